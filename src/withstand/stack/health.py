"""How a stack that is up fares, in words, each with its cure. Pure, but that it asks whether a process lives."""

from collections.abc import Sequence

from withstand.hints import near
from withstand.spec.stack import Stack
from withstand.spec.stack_tables import differing, in_brackets
from withstand.stack.blueprint import Blueprint
from withstand.stack.state import StackState, UnitState
from withstand.stack.supervision import VAIN_STARTS, Phase


def dead(state: StackState) -> list[UnitState]:
    """Services of a stack that is up which nobody starts again by himself, or who does so in vain."""
    if state.ended is not None:
        return []
    return [unit for unit in state.units if unit.phase is Phase.FAILED or unit.vain_starts >= VAIN_STARTS]


def why_down(unit: UnitState) -> str:
    """A clause, without its name."""
    vain = f"; {unit.vain_starts} starts in a row came to nothing" if unit.vain_starts >= VAIN_STARTS else ""
    return f"{(unit.reason or 'is down').rstrip('.')}{vain}"


def restart_line(name: str, units: list[UnitState]) -> str:
    """The command that has them started again."""
    return " ".join(["withstand", "restart", name, *(unit.name for unit in units)])


def not_whole(name: str, units: list[UnitState]) -> str:
    """One sentence of a stack that is up without some of its services."""
    told = "; ".join(f"{unit.name} {why_down(unit)}" for unit in units)
    return f"The stack {name!r} is up, but not all of it: {told}. Start it again: {restart_line(name, units)}."


def no_service(name: str, service: str, services: Sequence[str]) -> str:
    """One sentence, with what was meant."""
    return f"The stack {name!r} has no service {service!r}{near(service, services)}; it has {', '.join(services)}."


def supervisor_is_gone(name: str) -> str:
    """One sentence of a stack that can only be taken down."""
    return f"The stack {name!r} is not up any more: its supervisor is gone. withstand down {name}, then up again."


def is_up_already(up: Blueprint, wanted: Stack) -> str:
    """Said to whoever would bring it up once more."""
    name = up.name
    if not (tables := differing(up.made_of, wanted)):
        return f"The stack {name!r} is up already: withstand down {name}, or give this one another name (`name = …`)."
    return (
        f"The stack {name!r} is up already, and not as this file has it: {in_brackets(tables)} different. "
        f"withstand down {name}, then up again; or give this one another name (`name = …`)."
    )


def is_of_another_file(up: Blueprint, wanted: Stack) -> str | None:
    """Said to whoever would measure it; None = it is as the file has it, whatever plan that has."""
    if not (tables := differing(up.made_of, wanted)):
        return None
    return (
        f"The stack {up.name!r} that is up is not the one of this file: {in_brackets(tables)} different. "
        f"withstand down {up.name} ends it."
    )


def is_named_by_another(up: Blueprint, file: str, wanted: Stack | None) -> str:
    """Said to whoever names it by a file that is not its own; ``wanted`` is what that asks for, if it asks anything."""
    tables = differing(up.made_of, wanted) if wanted else []
    why = f": {in_brackets(tables)} different" if tables else ""
    return (
        f"The stack {up.name!r} is that of {up.file}, and not of {file}{why}. Where that one is meant, give its name, "
        f"{up.name}, instead of a file."
    )
