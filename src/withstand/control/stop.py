"""When a stage may end before its limit. Records and counts in, an ending out; it knows neither files nor workers."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from withstand.control.exactness import Exactness
from withstand.control.probe import Look, Probe, Standing
from withstand.record import Record
from withstand.spec import Precision, Promise, Until


class Ending(msgspec.Struct, frozen=True):
    """Why a stage may end."""

    because: str
    """Half a sentence: ``p95 TTFT ≤ 500 ms is kept``."""
    at_once: bool = False
    """What runs need not be waited for: the server has more than it can do."""


class StopRule(Protocol):
    """One reason to end."""

    def feed(self, records: Iterable[Record]) -> None:
        """Requests of the stage that are over."""

    def in_flight(self, at_ns: int, requests: int) -> None:
        """How many are on their way."""

    def ending(self) -> Ending | None:
        """None = it goes on."""

    def found(self) -> Look | None:
        """When it is over: what is known of the load; None where that was not the question."""


class UntilKnown:
    """A load that is tried: it ends when it is known whether its promises are kept."""

    def __init__(self, promises: Sequence[Promise]) -> None:
        self._probe = Probe(promises)
        self._look: Look | None = None

    def feed(self, records: Iterable[Record]) -> None:
        """Requests of the stage that are over."""
        self._probe.feed(records)

    def in_flight(self, at_ns: int, requests: int) -> None:
        """How many are on their way."""
        self._probe.in_flight(at_ns, requests)

    def ending(self) -> Ending | None:
        """None = it goes on."""
        look = self._probe.look()
        if look is None or look.standing is Standing.OPEN:
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

    def in_flight(self, at_ns: int, requests: int) -> None:
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
    return "the queue has no end" if look.standing is Standing.GROWS else "not known in this time"


def rule_of(until: Until | None) -> StopRule | None:
    """None where nothing but its limit ends a stage."""
    if until is None or not (until.known or until.precise):
        return None
    return UntilKnown(until.known) if until.known else UntilPrecise(until.precise)
