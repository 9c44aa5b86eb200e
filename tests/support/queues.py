"""Servers in virtual time: requests arrive by chance, wait, are served, and leave records as a client would."""

import heapq
import math
from collections.abc import Callable, Iterator
from random import Random

from withstand.record import Clock, Record, Status

NS = 1_000_000_000
Times = Callable[[Random, int], tuple[float, float]]
"""(seconds until the first token, seconds from there to the last), for a random source and the number in service."""


def arrivals_s(rate_rps: float, random: Random) -> Iterator[float]:
    now_s = 0.0
    while True:
        now_s += random.expovariate(rate_rps)
        yield now_s


def slots(rate_rps: float, count: int, times: Times, seed: int, tokens: int = 2) -> Iterator[Record]:
    """First come, first served, ``count`` at once; without an end, in the order of arrival."""
    random = Random(seed)
    free_s = [0.0] * count
    for number, at_s in enumerate(arrivals_s(rate_rps, random)):
        begin_s = max(at_s, heapq.heappop(free_s))
        busy = 1 + sum(end_s > begin_s for end_s in free_s)
        first_s, rest_s = times(random, busy)
        heapq.heappush(free_s, begin_s + first_s + rest_s)
        yield answer(number, at_s, begin_s + first_s, begin_s + first_s + rest_s, tokens)


def answer(number: int, at_s: float, first_s: float, last_s: float, tokens: int) -> Record:
    at_ns, first_ns, last_ns = (round(s * NS) for s in (at_s, first_s, last_s))
    step = (last_ns - first_ns) / max(1, tokens - 1)
    return Record(
        id=number, stage=0, status=Status.OK, scheduled_ns=at_ns, ready_ns=at_ns, started_ns=at_ns, sent_ns=at_ns,
        first_byte_ns=first_ns, chunk_ns=[round(first_ns + i * step) for i in range(tokens)], end_ns=last_ns,
        output_tokens=tokens, clock=Clock.KERNEL,
    )  # fmt: skip


def fixed(first_s: float, rest_s: float = 0.001) -> Times:
    """Always the same: M/D/1 with one slot, M/D/c with c."""
    return lambda _random, _busy: (first_s, rest_s)


def md1_waits_longer(load: float, service_s: float, than_s: float) -> float:
    """The chance to wait longer than so much in M/D/1 (Erlang 1909, as an alternating sum)."""
    steps = than_s / service_s
    rate = load
    total = 0.0
    for k in range(math.floor(steps) + 1):
        x = rate * (k - steps)
        total += math.exp(-x + (k * math.log(-x) if x < 0 else (0.0 if k == 0 else -math.inf)) - math.lgamma(k + 1)) * (
            -1 if False else 1
        ) * ((-1) ** k if False else 1) * (1 if k % 2 == 0 or x >= 0 else -1) if k else math.exp(-x)
    return 1 - (1 - load) * total
