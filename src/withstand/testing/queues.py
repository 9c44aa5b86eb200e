"""Servers in virtual time: requests arrive by chance, wait, are served, and leave the records that a client would.

No clock, no socket: an hour of load takes a second. What is decided by records can be tried on them many times.
"""

import heapq
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random

import msgspec

from withstand.control.probe import Look, Probe, Standing
from withstand.record import Clock, Record
from withstand.spec import Promise
from withstand.testing.records import make_record
from withstand.testing.truth.schedule import Schedule

NS = 1_000_000_000
_ONE_TOKEN = Schedule(tokens=1)
Times = Callable[[Random, int], tuple[float, float]]
"""(Seconds until the first token, seconds from there to the last), for a random source and how many are served."""


class Queue(msgspec.Struct, frozen=True):
    """First come, first served, ``slots`` at once; a Poisson process of arrivals."""

    slots: int
    times: Times
    tokens: int = 2

    def records(self, rate_rps: float, seed: int) -> Iterator[Record]:
        """Without an end, in the order of arrival."""
        random = Random(seed)
        free_s = [0.0] * self.slots
        at_s = 0.0
        number = 0
        while True:
            at_s += random.expovariate(rate_rps)
            begin_s = max(at_s, heapq.heappop(free_s))
            busy = 1 + sum(end_s > begin_s for end_s in free_s)
            first_s, rest_s = self.times(random, busy)
            heapq.heappush(free_s, begin_s + first_s + rest_s)
            yield _answer(number, at_s, begin_s + first_s, begin_s + first_s + rest_s, self.tokens)
            number += 1

    def answers(self, rate_rps: float, seed: int, count: int) -> list[Record]:
        """The first ``count`` of them."""
        return list(islice(self.records(rate_rps, seed), count))


def in_order_of_ends(records: Iterator[Record], until_s: float) -> Iterator[tuple[list[Record], int, int]]:
    """As a client sees them: at each arrival, (what has ended since the last one, the instant in ns, in flight)."""
    running: list[tuple[int, int, Record]] = []
    for record in records:
        assert record.sent_ns is not None
        assert record.end_ns is not None
        if record.sent_ns > until_s * NS:
            break
        ended = []
        while running and running[0][0] <= record.sent_ns:
            ended.append(heapq.heappop(running)[2])
        heapq.heappush(running, (record.end_ns, record.id, record))
        yield ended, record.sent_ns, len(running)


def probed(queue: Queue, promise: Promise, rate_rps: float, seed: int, until_s: float) -> tuple[Look, float]:
    """What a probe finds of a rate, and after how many seconds."""
    probe = Probe((promise,))
    for ended, now_ns, in_flight in in_order_of_ends(queue.records(rate_rps, seed), until_s):
        probe.feed(ended)
        probe.in_flight(now_ns, in_flight)
        look = probe.look()
        if look and look.standing is not Standing.OPEN:
            return look, now_ns / NS
    return probe.last_look(), until_s


def _answer(number: int, at_s: float, first_s: float, last_s: float, tokens: int) -> Record:
    first_ns, last_ns = round(first_s * NS), round(last_s * NS)
    step_ns = (last_ns - first_ns) / max(1, tokens - 1)
    return make_record(
        number,
        _ONE_TOKEN,
        sent_ms=at_s * 1e3,
        first_byte_ns=first_ns,
        chunk_ns=[round(first_ns + place * step_ns) for place in range(tokens)],
        end_ns=last_ns,
        output_tokens=tokens,
        clock=Clock.KERNEL,
    )


def fixed(first_s: float, rest_s: float) -> Times:
    """Always the same: with one slot M/D/1, with c M/D/c."""
    return lambda _random, _busy: (first_s, rest_s)


def exponential(first_s: float, rest_s: float) -> Times:
    """Answers of exponential length: M/M/c, but for the first token."""
    return lambda random, _busy: (first_s, random.expovariate(1 / rest_s))


def batched(first_s: float, rest_s: float, each_s: float) -> Times:
    """As an engine that decodes in batches: each that is served beside it makes an answer that much longer."""
    return lambda _random, busy: (first_s, rest_s + each_s * busy)
