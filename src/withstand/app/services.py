"""The stack that a run measures, as its supervisor tells of it: which of its services were away, and when.

A service that has died is met by the run only as failures, or not at all where another one answers in its place.
"""

from collections.abc import Callable

from msgspec.structs import replace

from withstand import clock
from withstand.app.journal import Journal
from withstand.app.screen import Screen
from withstand.record import TAKEN_DOWN, Outage
from withstand.spec import Target
from withstand.stack.aims import asked_there
from withstand.stack.standing import Standing
from withstand.stack.state import TAKEN_DOWN as ENDED_SO
from withstand.stack.state import StackState, read_state
from withstand.stack.supervision import Absence
from withstand.wire.reply import one_line

_STACK = "the stack"
_KILLED = "has lost its supervisor, which was killed, and with it all services"


class Services:
    """Of one stack, from now on."""

    def __init__(self, standing: Standing) -> None:
        self._folder, self._blueprint = standing.folder, standing.blueprint
        self._supervisor = standing.state.supervisor
        self._began_s = self._minded_s = clock.wall_s()
        self._found: dict[tuple[str, float], Outage] = {}
        """By service and its supervisor's instant; their own are on the monotonic clock."""

    def look(self) -> list[str]:
        """See how they stand: a sentence on each that has gone since the last look."""
        known = set(self._found)
        state = read_state(self._folder)
        if why := self._why_unminded(state):
            self._note(_STACK, Absence(self._minded_s, why))
        else:
            self._minded_s = clock.wall_s()
        for unit in state.units if state else ():
            for absence in unit.absences:
                self._note(unit.name, absence)
        return [f"{one.service} {one.reason}" for key, one in self._found.items() if key not in known]

    def outages(self, epoch_ns: int, target: Target) -> tuple[Outage, ...]:
        """All that were seen since a run's epoch (monotonic); ``target`` is whom it asks."""
        asked = {*asked_there(self._blueprint, target.base_url or "", target.model), _STACK}
        found = [
            replace(
                one,
                began_ns=one.began_ns - epoch_ns,
                back_ns=None if one.back_ns is None else one.back_ns - epoch_ns,
                asked=one.service in asked,
            )
            for one in self._found.values()
        ]
        return tuple(sorted((o for o in found if o.back_ns is None or o.back_ns > 0), key=lambda one: one.began_ns))

    def _why_unminded(self, state: StackState | None) -> str | None:
        """Why nobody minds it any more; None = somebody does."""
        if state is None or state.supervisor != self._supervisor:
            return TAKEN_DOWN
        if state.ended is not None:
            return TAKEN_DOWN if state.ended == ENDED_SO else f"has ended: {state.ended}"
        return None if self._supervisor.is_alive else _KILLED

    def _note(self, name: str, seen: Absence) -> None:
        """What was over before the run is none of its; the stack is lost once."""
        key = (name, seen.began_s) if name != _STACK else (name, 0.0)
        known = self._found.get(key)
        if known is None and (seen.back_s is None or seen.back_s >= self._began_s):
            known = Outage(service=name, began_ns=_monotonic_ns(seen.began_s), reason=one_line(seen.reason))
            self._found[key] = known
        if known and name != _STACK:  # why it went is told once all of it has ended
            known = self._found[key] = replace(known, reason=one_line(seen.reason))
        if known and known.back_ns is None and seen.back_s is not None:
            self._found[key] = replace(known, back_ns=_monotonic_ns(seen.back_s))


def _monotonic_ns(wall_s: float) -> int:
    now = clock.anchor()
    return int(wall_s * 1e9) - now.wall_ns + now.monotonic_ns


def minding(services: Services | None, target: Target, journal: Journal, screen: Screen) -> Callable[[], None]:
    """Has them looked at, what is new told, and all of it written down; nothing where no stack of ours is asked."""
    if services is None:
        return lambda: None

    def mind() -> None:
        for told in services.look():
            screen.message(f"Of the stack: {told}")
        journal.outages(services.outages(journal.epoch_ns, target))

    return mind
