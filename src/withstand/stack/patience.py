"""How long services of a stack are waited for: as long as they, and those that they need, may take. Pure."""

from collections.abc import Sequence

from withstand.processes import KEEPER_S
from withstand.stack.blueprint import Blueprint, behind
from withstand.stack.state import StackState, UnitState
from withstand.stack.supervision import BACK_OFF_MAX_S, Phase

_LATE_S = 5.0
"""What a supervisor may take to tell, besides the times that services may take."""


def why_too_long(blueprint: Blueprint, state: StackState, unit: UnitState, waited_s: float) -> str | None:
    """A clause. Who waits for others is given their time alone. None = it is within its time."""
    if unit.phase is Phase.READY:
        return None
    chain = behind(unit.name, blueprint.processes)
    timed = [process for process in chain if process.name != unit.name or unit.phase is not Phase.WAITING]
    limit_s = _LATE_S + sum(process.upkeep.stop_s + KEEPER_S for process in chain)
    limit_s += sum(process.upkeep.ready_s for process in timed)
    lacking = waited_for(blueprint, state, [unit.name])
    limit_s += BACK_OFF_MAX_S * any(one.phase is Phase.BACKING_OFF for one in lacking)
    if waited_s <= limit_s:
        return None
    others = ", ".join(f"{one.name}, which is {one.phase.value}" for one in lacking if one.name != unit.name)
    waits = f"waits for {others}" if others else f"is {unit.phase.value}"
    return f"{unit.name} is not ready within {limit_s:.0f} s: it {waits}"


def waited_for(blueprint: Blueprint, state: StackState, services: Sequence[str]) -> tuple[UnitState, ...]:
    """Those that are asked for, and what they need that is not ready."""
    lacking = {each.name: each for each in state.units if each.phase is not Phase.READY}
    needs = {process.name: process.needs for process in blueprint.processes}
    found = set(services)
    while more := {need for name in found for need in needs[name] if need in lacking} - found:
        found |= more
    return tuple(unit for unit in state.units if unit.name in found)
