"""When a stage may end before its limit. Records and counts in, an ending out; it knows neither files nor workers."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from withstand.control.exactness import Exactness
from withstand.control.failing import Failing
from withstand.control.growing import Growing
from withstand.control.probe import Look, Probe, Standing
from withstand.metrics.rounding import percent
from withstand.record import Record
from withstand.spec import Precision, Promise, Until


class Ending(msgspec.Struct, frozen=True):
    """Why a stage may end."""

    because: str
    """Half a sentence: ``p95 TTFT ≤ 500 ms is kept``."""
    at_once: bool = False
    """What runs need not be waited for: the server has more than it can do."""
    too_much: bool = False
    """Heavier loads need not be tried."""


class StopRule(Protocol):
    """One reason to end."""

    def feed(self, records: Iterable[Record]) -> None:
        """Requests of the stage that are over; what it does not take need not be read."""

    def in_flight(self, at_ns: int, requests: int, over: int) -> None:
        """How many are on their way, and how many are over by then."""

    def ending(self) -> Ending | None:
        """None = it goes on."""

    def found(self) -> Look | None:
        """When it is over: what is known of the load; None where that was not the question."""


class UntilKnown:
    """A load that is tried: it ends when it is known whether its promises are kept."""

    def __init__(self, promises: Sequence[Promise], lasts_s: float = math.inf) -> None:
        self._probe = Probe(promises, lasts_s)
        self._look: Look | None = None

    def feed(self, records: Iterable[Record]) -> None:
        """Requests of the stage that are over."""
        self._probe.feed(records)

    def in_flight(self, at_ns: int, requests: int, over: int) -> None:
        """How many are on their way."""
        self._probe.in_flight(at_ns, requests, over)

    def ending(self) -> Ending | None:
        """None = it goes on."""
        look = self._probe.look()
        if look is None or (look.standing is Standing.OPEN and not self._probe.is_futile(look)):
            return None
        self._look = look
        return Ending(told(look), at_once=look.standing is not Standing.HOLDS)

    def found(self) -> Look:
        """What ended it, else what all of its requests say."""
        return self._look or self._probe.last_look()


class UntilPrecise:
    """It ends when its numbers are known as exactly as was asked."""

    def __init__(self, wanted: Sequence[Precision]) -> None:
        self._wanted = wanted
        self._exactness = Exactness(wanted)

    def feed(self, records: Iterable[Record]) -> None:
        """Requests of the stage that are over."""
        self._exactness.feed(records)

    def in_flight(self, at_ns: int, requests: int, over: int) -> None:
        """Does not matter here."""

    def ending(self) -> Ending | None:
        """None = it goes on."""
        return Ending(" and ".join(map(str, self._wanted))) if self._exactness.reached() else None

    def found(self) -> None:
        """No load was tried."""


def told(look: Look) -> str:
    """Half a sentence about a load."""
    if look.standing is Standing.HOLDS:
        return "what is promised is kept"
    if look.standing is Standing.BREAKS:
        return f"{look.promise} is broken"
    if look.doubt:
        return f"not believed: {look.doubt}"
    return "the queue has no end" if look.standing is Standing.GROWS else f"not known in this time{_seen(look)}"


def _seen(look: Look) -> str:
    """How much is known of it: requests that queue behind each other say less than as many that do not."""
    worst = max((share for share in look.shares if share), key=lambda share: share.value, default=None)
    if worst is None:
        return ""
    broke = f"{percent(worst.value)} of {look.requests:,} requests broke it"
    alone = round(worst.of)
    return f": {broke}" + (f", which are worth {alone:,} independent ones" if alone < look.requests else "")


class UntilFailing:
    """It ends when it is sure that more than a share of the requests fail."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._failing = Failing(share)

    def feed(self, records: Iterable[Record]) -> None:
        """Requests of the stage that are over."""
        self._failing.feed(records)

    def in_flight(self, at_ns: int, requests: int, over: int) -> None:
        """Does not matter here."""

    def ending(self) -> Ending | None:
        """None = it goes on. What runs is waited for: it may be all that is good."""
        failing = self._failing
        if not failing.is_sure():
            return None
        counts = f"{failing.failed:,} of the first {failing.asked:,} did"
        return Ending(f"more than {100 * self._share:g} % of the requests fail ({counts})", too_much=True)

    def found(self) -> None:
        """No load was tried."""


class UntilGrowing:
    """It ends when it is sure that a queue grows."""

    def __init__(self) -> None:
        self._growing = Growing()

    def feed(self, records: Iterable[Record]) -> None:
        """Requests of the stage that are over."""
        self._growing.feed(records)

    def in_flight(self, at_ns: int, requests: int, over: int) -> None:
        """How many are on their way."""
        self._growing.in_flight(at_ns, requests, over)

    def ending(self) -> Ending | None:
        """None = it goes on."""
        growth = self._growing.growth()
        if growth is None:
            return None
        rise = f"from {growth.early:,.0f} to {growth.late:,.0f} requests on their way"
        return Ending(f"the queue grows ({rise})", at_once=True, too_much=True)

    def found(self) -> None:
        """No load was tried."""


class Noticing:
    """A rule that ends nothing: what it would end for is told, once."""

    def __init__(self, rule: StopRule, tell: Callable[[str], None]) -> None:
        self._rule = rule
        self._tell = tell
        self._told = False

    def feed(self, records: Iterable[Record]) -> None:
        """Requests of the stage that are over."""
        if not self._told:
            self._rule.feed(records)

    def in_flight(self, at_ns: int, requests: int, over: int) -> None:
        """How many are on their way."""
        self._rule.in_flight(at_ns, requests, over)

    def ending(self) -> None:
        """It goes on."""
        if not self._told and (ending := self._rule.ending()):
            self._told = True
            self._tell(ending.because)

    def found(self) -> None:
        """No load was tried."""


class FirstOf:
    """Several rules: the first that has a reason ends the stage."""

    def __init__(self, rules: Sequence[StopRule]) -> None:
        self._rules = rules

    def feed(self, records: Iterable[Record]) -> None:
        """Requests of the stage that are over."""
        new = list(records)
        for rule in self._rules:
            rule.feed(new)

    def in_flight(self, at_ns: int, requests: int, over: int) -> None:
        """How many are on their way."""
        for rule in self._rules:
            rule.in_flight(at_ns, requests, over)

    def ending(self) -> Ending | None:
        """None = it goes on."""
        endings = [rule.ending() for rule in self._rules]
        return next((ending for ending in endings if ending), None)

    def found(self) -> Look | None:
        """By the one that was asked for it."""
        looks = [rule.found() for rule in self._rules]
        return next((look for look in looks if look), None)


def rules_of(until: Until | None, lasts_s: float = math.inf) -> Iterator[StopRule]:
    """None where nothing but its limit ends a stage; ``lasts_s`` is that limit."""
    if until is None:
        return
    if until.known:
        yield UntilKnown(until.known, lasts_s)
    if until.precise:
        yield UntilPrecise(until.precise)
    if until.errors is not None:
        yield UntilFailing(until.errors)
    if until.queue is not None:
        yield UntilGrowing()
