"""Servers in virtual time: requests arrive by chance, wait, are served, and leave the records that a client would.

No clock, no socket: an hour of load takes a second. What is decided by records can be tried on them many times.
"""

import heapq
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import NamedTuple

import msgspec

from withstand.control.probe import Look, Probe, Standing
from withstand.record import Clock, Record
from withstand.spec import Promise
from withstand.testing.records import make_record
from withstand.testing.truth.schedule import Schedule

NS = 1_000_000_000
_ONE_TOKEN = Schedule(tokens=1)


class Turn(NamedTuple):
    """What the time of an answer may depend on, when its turn comes."""

    random: Random
    busy: int
    """How many are served, itself among them."""
    at_s: float
    """Since the server was started."""


Times = Callable[[Turn], tuple[float, float]]
"""(Seconds until the first token, seconds from there to the last)."""


class Queue(msgspec.Struct, frozen=True):
    """First come, first served, ``slots`` at once; a Poisson process of arrivals."""

    slots: int
    times: Times
    tokens: int = 2

    def records(self, rate_rps: float, seed: int, from_s: float = 0.0) -> Iterator[Record]:
        """Without an end, in the order of arrival; the server is empty, and was started ``from_s`` ago."""
        random = Random(seed)
        free_s = [0.0] * self.slots
        at_s = 0.0
        number = 0
        while True:
            at_s += random.expovariate(rate_rps)
            begin_s = max(at_s, heapq.heappop(free_s))
            busy = 1 + sum(end_s > begin_s for end_s in free_s)
            first_s, rest_s = self.times(Turn(random, busy, from_s + begin_s))
            heapq.heappush(free_s, begin_s + first_s + rest_s)
            yield _answer(number, at_s, begin_s + first_s, begin_s + first_s + rest_s, self.tokens)
            number += 1

    def answers(self, rate_rps: float, seed: int, count: int) -> list[Record]:
        """The first ``count`` of them."""
        return list(islice(self.records(rate_rps, seed), count))


def in_order_of_ends(records: Iterator[Record], until_s: float) -> Iterator[tuple[list[Record], tuple[int, int, int]]]:
    """As a client sees it, at each arrival: what has ended since the last, (the instant in ns, in flight, over)."""
    running: list[tuple[int, int, Record]] = []
    for asked, record in enumerate(records, 1):
        assert record.sent_ns is not None
        assert record.end_ns is not None
        if record.sent_ns > until_s * NS:
            break
        ended = []
        while running and running[0][0] <= record.sent_ns:
            ended.append(heapq.heappop(running)[2])
        heapq.heappush(running, (record.end_ns, record.id, record))
        yield ended, (record.sent_ns, len(running), asked - len(running))


def probed(
    queue: Queue, promise: Promise, rate_rps: float, seed: int, until_s: float, from_s: float = 0.0
) -> tuple[Look, float]:
    """What a probe finds of a rate, and after how many seconds."""
    probe = Probe((promise,), until_s)
    for ended, count in in_order_of_ends(queue.records(rate_rps, seed, from_s), until_s):
        probe.feed(ended)
        probe.in_flight(*count)
        look = probe.look()
        if look and (look.standing is not Standing.OPEN or probe.is_futile(look)):
            return look, count[0] / NS
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
    return lambda _: (first_s, rest_s)


def exponential(first_s: float, rest_s: float) -> Times:
    """Answers of exponential length: M/M/c, but for the first token."""
    return lambda turn: (first_s, turn.random.expovariate(1 / rest_s))


def batched(first_s: float, rest_s: float, each_s: float) -> Times:
    """As an engine that decodes in batches: each that is served beside it makes an answer that much longer."""
    return lambda turn: (first_s, rest_s + each_s * turn.busy)


def bimodal(first_s: float, short_s: float, long_s: float, share: float) -> Times:
    """Short answers, and a ``share`` of long ones."""
    return lambda turn: (first_s, long_s if turn.random.random() < share else short_s)


def heavy_tailed(first_s: float, mean_s: float, shape: float) -> Times:
    """Lengths as a power law has them (Pareto); with a shape of 2 and below their variance has no end."""
    scale_s = mean_s * (shape - 1) / shape
    return lambda turn: (first_s, scale_s * turn.random.paretovariate(shape))


def cached(hit_s: float, miss_s: float, rest_s: float, lasts: float) -> Times:
    """A prefix cache: the more are served at once, the more often the prompt has been thrown out; ``lasts`` = half."""
    return lambda turn: (hit_s if turn.random.random() < 1 / (1 + turn.busy / lasts) else miss_s, rest_s)


def stalling(times: Times, every_s: float, for_s: float) -> Times:
    """All stands still so long every so often: a garbage collection, say. What is under way then ends later."""

    def stalled(turn: Turn) -> tuple[float, float]:
        first_s, rest_s = times(turn)
        first_s = _stopped(turn.at_s, first_s, every_s, for_s)
        return first_s, _stopped(turn.at_s + first_s, rest_s, every_s, for_s)

    return stalled


def _stopped(at_s: float, work_s: float, every_s: float, for_s: float) -> float:
    """How long so much work takes: none is done in the last ``for_s`` of each period."""
    end_s = at_s
    while True:
        open_s = every_s - for_s - end_s % every_s
        if open_s > work_s:
            return end_s + work_s - at_s
        work_s -= max(0.0, open_s)
        end_s += every_s - end_s % every_s


def drifting(times: Times, pace: Callable[[float], float]) -> Times:
    """Everything takes ``pace`` times as long as it did, by the seconds since the server was started."""

    def drifted(turn: Turn) -> tuple[float, float]:
        first_s, rest_s = times(turn)
        return first_s * pace(turn.at_s), rest_s * pace(turn.at_s)

    return drifted
