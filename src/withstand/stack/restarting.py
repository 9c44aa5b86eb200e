"""Services of a stack that is up, ended and started again by its supervisor; the others stay as they are."""

from collections.abc import Callable, Sequence

import msgspec

from withstand import clock
from withstand.errors import EngineError, StorageError, UsageError
from withstand.stack.health import dead, no_service, restart_line, supervisor_is_gone, why_down
from withstand.stack.orders import heard, order, ordered
from withstand.stack.patience import waited_for, why_too_long
from withstand.stack.resting import left_to_gateway
from withstand.stack.standing import Standing, no_room
from withstand.stack.state import TAKEN_DOWN, StackState, UnitState, log_of, read_state
from withstand.stack.supervision import Phase

_LOOK_S = 0.05
_HEARD_S = 60.0
"""A supervisor may take this long to hear, besides the time that a service may take to end."""
_ROOM_S = 2.0
"""What is not heard by then is perhaps heard, and cannot be written down."""


def restart(standing: Standing, services: Sequence[str], tell: Callable[[StackState], None]) -> Standing:
    """The stack, these services of it ready again; ``tell`` hears of theirs.

    Raises:
        UsageError: there is no such service, or it is not the supervisor's.
        StorageError: nothing can be written where the stack's state is.
        EngineError: the stack is not up, or one of them does not come up; then it stays down.
    """
    _check(standing, services)
    _check_room(standing)  # nothing is ended whose new start could not be told
    order(standing.folder, services)
    _wait_until_heard(standing, services)
    return _wait_until_ready(standing, services, tell)


def _check(standing: Standing, services: Sequence[str]) -> None:
    names = [process.name for process in standing.blueprint.processes]
    for service in services:
        if service in left_to_gateway(standing.blueprint):
            raise UsageError(f"{service} is started and stopped by the gateway, when somebody asks for it.")
        if service not in names:
            raise UsageError(no_service(standing.name, service, names))
    standing.check_here()
    if not standing.is_up:
        raise EngineError(supervisor_is_gone(standing.name))


def _wait_until_heard(standing: Standing, services: Sequence[str]) -> None:
    stop_s = sum(process.upkeep.stop_s for process in standing.blueprint.processes)
    give_up_ns = clock.now_ns() + int((stop_s + _HEARD_S) * 1e9)
    room_ns = clock.now_ns() + int(_ROOM_S * 1e9)
    while waiting := ordered(standing.folder).intersection(services):
        _check_minded(standing, read_state(standing.folder))
        if clock.now_ns() > room_ns:
            _check_room(standing)
            room_ns += int(_ROOM_S * 1e9)
        if clock.now_ns() > give_up_ns:
            heard(standing.folder, waiting)
            raise EngineError(f"The supervisor of {standing.name!r} does not hear; withstand down {standing.name}.")
        clock.sleep_s(_LOOK_S)


def _wait_until_ready(standing: Standing, services: Sequence[str], tell: Callable[[StackState], None]) -> Standing:
    began_ns = clock.now_ns()
    while True:
        state = _check_minded(standing, read_state(standing.folder))
        waited_s = (clock.now_ns() - began_ns) / 1e9
        asked = tuple(unit for unit in state.units if unit.name in services)
        tell(msgspec.structs.replace(state, units=waited_for(standing.blueprint, state, services)))
        for unit in asked:
            why = _why_not(standing, state, unit)
            if late := why_too_long(standing.blueprint, state, unit, waited_s):
                why = why or f"{late}; withstand ps {standing.name}."
            if why:
                raise EngineError(f"{why} Its log: {log_of(standing.folder, unit.name)}")
        if all(unit.phase is Phase.READY for unit in asked):
            return Standing(name=standing.name, folder=standing.folder, blueprint=standing.blueprint, state=state)
        clock.sleep_s(_LOOK_S)


def _check_minded(standing: Standing, state: StackState | None) -> StackState:
    """The state, of one whose supervisor lives; else there is nobody who hears, or starts anything."""
    if state is None or state.mark != standing.state.mark or state.ended == TAKEN_DOWN:
        raise EngineError(f"The stack {standing.name!r} was taken down meanwhile.")
    if state.ended is not None or not state.supervisor.is_alive:
        raise EngineError(supervisor_is_gone(standing.name))
    return state


def _check_room(standing: Standing) -> None:
    if why := no_room(standing.folder):
        raise StorageError(f"{why}; withstand ps {standing.name} tells then how its services stand.")


def _why_not(standing: Standing, state: StackState, unit: UnitState) -> str | None:
    """None = it may still come up."""
    reason = unit.reason.rstrip(".")
    if unit.phase is Phase.FAILED:
        return f"{unit.name} does not come up: {reason}."
    if unit.phase is Phase.BACKING_OFF:
        return f"{unit.name} does not come up: {reason}; it is tried again by itself."
    if unit.phase is not Phase.WAITING:
        return None
    lost = dead(state)
    if gone := [one for one in waited_for(standing.blueprint, state, [unit.name]) if one in lost]:
        down = "; ".join(f"{one.name}, which {why_down(one)}" for one in gone)
        return f"{unit.name} waits for {down}. Start them again: {restart_line(standing.name, [*gone, unit])}."
    return None
