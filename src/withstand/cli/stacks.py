"""Which stack is meant, for the verbs that take its name, and how services stand as a table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from withstand import clock
from withstand.cli.output import say
from withstand.errors import UsageError
from withstand.stack.aims import with_aims
from withstand.stack.local import Standing, standings
from withstand.stack.state import StackState
from withstand.stack.supervision import Phase

if TYPE_CHECKING:
    from rich.console import Console

_MB = 1e6


def meant(name: str | None) -> Standing:
    """The one of that name, or the only one.

    Raises:
        UsageError: there is none, or which one is not said.
    """
    found = standings()
    if name is not None:
        for standing in found:
            if standing.name == name:
                return standing
        raise UsageError(f"There is no stack {name!r}; {_there_are(found)}.")
    if len(found) != 1:
        raise UsageError(f"Name a stack: {_there_are(found)}." if found else "No stack is up; withstand up STACK.toml.")
    return found[0]


def _there_are(found: Sequence[Standing]) -> str:
    return f"there {'is' if len(found) == 1 else 'are'} {', '.join(s.name for s in found)}" if found else "none is up"


def aimed(options: Mapping[str, Any], plan: dict[str, Any], standing: Standing) -> dict[str, Any]:
    """The plan with every target's address in the stack.

    Raises:
        UsageError: the options lead elsewhere, or a target to a service that is not there.
    """
    if options.get("base_url") is not None:
        raise UsageError("--base-url: a stack's file says itself where to ask; leave one of the two out.")
    tree = with_aims(plan, standing.blueprint, options.get("model"))
    if options.get("metrics_url"):
        for target in (tree["target"], *tree.get("targets", {}).values()):
            target.pop("metrics_urls", None)
    return tree


def draw_standing(standing: Standing, console: "Console") -> None:
    """Its services, a line each."""
    from rich.table import Table  # noqa: PLC0415  --help does not need it

    table = Table(title=_title(standing), title_justify="left", box=None, header_style="", pad_edge=False)
    for heading in ("service", "kind", "is", "since", "ready in", "starts again", "memory", "pid", "address"):
        table.add_column(heading, justify="right" if heading in {"since", "ready in", "memory", "pid"} else "left")
    processes = {process.name: process for process in standing.blueprint.processes}
    for unit in standing.state.units:
        process = processes[unit.name]
        table.add_row(
            unit.name,
            process.kind,
            unit.phase.value if standing.is_up else "gone",
            _span(clock.wall_s() - unit.since_s),
            "" if unit.ready_after_s is None else f"{unit.ready_after_s:.1f} s",
            str(unit.restarts or ""),
            "" if unit.leader is None else f"{unit.leader.memory_bytes / _MB:,.0f} MB",
            "" if unit.leader is None else str(unit.leader.pid),
            process.base_url.removeprefix("http://"),
        )
    console.print(table)
    for unit in standing.state.units:
        if unit.reason and unit.phase is not Phase.READY:
            console.print(f"{unit.name} {unit.reason}", markup=False, highlight=False)


def _title(standing: Standing) -> str:
    door = f"{standing.name}: {standing.blueprint.door} · {standing.blueprint.model}"
    return door if standing.is_up else f"{door} (its supervisor is gone: withstand down {standing.name})"


def _span(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


class StackTold:
    """What was said already."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._phases: dict[str, Phase] = {}

    def hear(self, state: StackState) -> None:
        """Say what is new."""
        for unit in state.units:
            if self._phases.get(unit.name) is unit.phase or self._quiet:
                continue
            self._phases[unit.name] = unit.phase
            match unit.phase:
                case Phase.STARTING:
                    say(f"{unit.name}: starting")
                case Phase.READY:
                    say(f"{unit.name}: ready after {unit.ready_after_s:.1f} s")
