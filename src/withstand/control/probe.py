"""Does a load keep what is promised? A test that looks again and again while the load goes on, and ends when it knows.

Each look counts what broke a promise among the requests that are over, in the order in which they were asked, so that
slow ones are not left out for being slow. A look is wrong with a chance of ``CHANCE`` on either side; looks come after
a fifth more requests each, and share most of what they see: at a load that is the limit itself, where nothing can be
known, 21 of 400 probes of 300 s (four simulated queues) said that they knew.
"""

import heapq
import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from statistics import stdev

import msgspec

from withstand.compare.dependence import memory_in_values
from withstand.control.certainty import all_kept, first_broken
from withstand.control.futility import is_futile
from withstand.control.kept import broken
from withstand.control.kept import took_ns as took_of
from withstand.control.order import InOrder
from withstand.control.share import Share, share_of
from withstand.control.steady import steady_from
from withstand.metrics.backlog import queue_growth
from withstand.metrics.latency import NS_PER_MS, timing_if_good
from withstand.metrics.rates import NS_PER_S
from withstand.record import Record, Status
from withstand.spec import Promise

_FIRST_LOOK = 30
_FEWEST = 10
"""Of fewer, not even that all are broken says much of a load."""
_NEXT_LOOK = 1.2
INDEPENDENT_MIN = 30.0
"""Fewer independent requests than these have not seen the load's slow waves."""
_MOSTLY = 0.5
_FAR = 4.0
"""Standard deviations of a promise's times (their logarithms) between nearly all of them and what is promised."""


class Standing(StrEnum):
    """Of a load."""

    HOLDS = "holds"
    BREAKS = "breaks"
    GROWS = "grows"
    """The queue has no end: whatever is promised is broken sooner or later."""
    OPEN = "open"
    """Not known."""


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a load."""

    standing: Standing
    promise: Promise | None = None
    """The one that is broken."""
    shares: tuple[Share | None, ...] = ()
    """Of what broke each promise; None = nothing was counted."""
    requests: int = 0
    limited: int = 0
    """Of the requests, those that were answered 429."""
    doubt: str = ""
    """Why what was seen is not believed, in half a sentence; then the load is open."""

    def share(self, which: int) -> Share | None:
        """Of what broke the promise at a place."""
        return self.shares[which] if which < len(self.shares) else None

    @property
    def by_limiter(self) -> bool:
        """Whether a promise is broken, mostly by a limiter (429): that is no limit of the engine."""
        most = max((share.value for share in self.shares if share), default=0.0)
        return self.standing is Standing.BREAKS and self.limited > _MOSTLY * most * self.requests


class Told(msgspec.Struct, frozen=True):
    """A time in ms; an end that so few requests cannot bound is None."""

    value: float
    low: float | None
    high: float | None


class Probed(msgspec.Struct, frozen=True):
    """A load, and what was found of it."""

    load: float
    look: Look
    times: tuple[Told | None, ...] = ()
    """Of each promise, at the percentile that is promised; none where nobody has asked for them."""
    stage: str = ""
    """Its name in the run."""

    @property
    def holds(self) -> bool:
        """Its promises are kept."""
        return self.look.standing is Standing.HOLDS

    @property
    def breaks(self) -> bool:
        """One of them is not, or will not be."""
        return self.look.standing in {Standing.BREAKS, Standing.GROWS}


class Probe:
    """One load, looked at as its answers come."""

    def __init__(self, promises: Sequence[Promise], lasts_s: float = math.inf) -> None:
        self._promises = promises
        self._lasts_ns = lasts_s * NS_PER_S
        self._order = InOrder()
        self._series = _Series(promises)
        self._in_flight: list[tuple[int, int]] = []
        self._over = 0
        self._next_look = _FIRST_LOOK

    def feed(self, records: Iterable[Record], most: float = math.inf) -> None:
        """Requests that are over, in any order; their ids count from 0. Of those that tell something, ``most``."""
        for record in self._order.take(records):
            if len(self._series) < most:
                self._series.add(record)

    def in_flight(self, at_ns: int, requests: int, over: int) -> None:
        """How many are on their way at an instant, and how many are over by then."""
        self._in_flight.append((at_ns, requests))
        self._over = over

    def look(self) -> Look | None:
        """None where it is not yet time for another one."""
        if len(self._series) < self._next_look:
            return None
        self._next_look = math.ceil(len(self._series) * _NEXT_LOOK)
        return self._look()

    def last_look(self) -> Look:
        """When nothing more comes: those that are still missed are passed over."""
        for record in self._order.rest():
            self._series.add(record)
        return self._look()

    def is_futile(self, look: Look) -> bool:
        """Whether its load, which is open, will hardly be known when its time is over."""
        part = self._in_flight[-1][0] / self._lasts_ns if self._in_flight else 0.0
        return look.standing is Standing.OPEN and is_futile(look.shares, self._promises, part)

    def _look(self) -> Look:
        series = self._series
        memory = series.memory()
        shares = tuple(share_of(*counts, memory) for counts in series.counts)
        requests = len(series)

        def told(standing: Standing, promise: Promise | None = None) -> Look:
            return Look(standing=standing, promise=promise, shares=shares, requests=requests, limited=series.limited)

        if requests >= _FEWEST and (promise := first_broken(shares, self._promises)):
            return told(Standing.BREAKS, promise)
        if self._grows():
            return told(Standing.GROWS)
        if all_kept(shares, self._promises) and requests >= INDEPENDENT_MIN * memory and series.steady:
            return told(Standing.HOLDS)
        return told(Standing.OPEN)

    def _grows(self) -> bool:
        return queue_growth(self._in_flight, self._over, self._series.took_ns) is not None


class _Series:
    """Request by request, in the order in which they were asked."""

    def __init__(self, promises: Sequence[Promise]) -> None:
        self.counts: list[tuple[list[int], list[int]]] = [([], []) for _ in promises]
        self.limited = 0
        self._asked_ns: list[int] = []
        self.took_ns: list[int] = []
        """Of those that were answered well."""
        self._promises = promises
        self._times: list[list[float]] = [[] for _ in promises]
        """Logarithms of what each promise is about, in ms."""

    def __len__(self) -> int:
        return len(self.counts[0][0])

    def add(self, record: Record) -> None:
        timing = timing_if_good(record)
        counts = [broken(record, promise, timing) for promise in self._promises]
        if not any(of for _, of in counts):
            return
        self.limited += record.status is Status.LIMITED
        for (bad, of), (bads, ofs) in zip(counts, self.counts, strict=True):
            bads.append(bad)
            ofs.append(of)
        if timing is not None and record.sent_ns is not None:
            took_ns = timing.e2el_ns or 0
            self._asked_ns.append(record.sent_ns)
            self.took_ns.append(took_ns)
            for promise, times in zip(self._promises, self._times, strict=True):
                took = took_of(timing, promise.metric) if promise.limit and promise.metric != "itl" else None
                if took:
                    times.append(math.log(took / NS_PER_MS))

    def memory(self) -> float:
        """As many requests as count as one: by the times that are promised, and by the company that they met.

        Where nothing has had to wait yet, times tell nothing of how long a queue will stay; the company does. Where
        nearly all times stay far below what is promised, how they hang together tells nothing of what breaks it: a
        machine that gets slower by a tenth and faster again would make ten requests of one user count as one.
        """
        if len(self.took_ns) < _FIRST_LOOK:
            return 1.0
        met = self._met()
        hanging = [] if self._far_below else self._promised()
        return max(1 + math.fsum(met) / len(met), *map(memory_in_values, [met, *hanging]))

    def _promised(self) -> list[list[float]]:
        """The times of each promise; those of whole answers where it has none of its own."""
        whole = _logs(self.took_ns)
        return [times or whole for times in self._times]

    @property
    def _far_below(self) -> bool:
        return all(
            len(times) == len(bads) and _is_far(times, promise)
            for promise, times, (bads, _) in zip(self._promises, self._times, self.counts, strict=True)
        )

    def _met(self) -> list[float]:
        """How many were on their way when each was asked."""
        ends: list[int] = []
        met = []
        for asked_ns, took_ns in zip(self._asked_ns, self.took_ns, strict=True):
            while ends and ends[0] <= asked_ns:
                heapq.heappop(ends)
            met.append(float(len(ends)))
            heapq.heappush(ends, asked_ns + took_ns)
        return met

    @property
    def steady(self) -> bool:
        """Whether the times that are promised have settled; where no request has one of its own, whole answers."""
        return all(len(set(times)) < 2 or steady_from(times) is not None for times in self._promised())


def _is_far(times: Sequence[float], promise: Promise) -> bool:
    """Of half of those that may break the promise, all others are so far below it."""
    assert promise.limit is not None
    nearly_all = sorted(times)[math.ceil((1 + promise.share) / 2 * len(times)) - 1]
    return math.log(promise.limit) - nearly_all >= _FAR * stdev(times)


def _logs(times_ns: Sequence[int]) -> list[float]:
    return [math.log(max(time_ns, 1)) for time_ns in times_ns]
