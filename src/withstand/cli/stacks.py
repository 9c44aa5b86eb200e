"""Which stack is meant, for the verbs that take its name, and how services stand as a table."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from withstand import clock
from withstand.cli.columns import Column, lines_of
from withstand.cli.output import rendered, say, write_result
from withstand.errors import UsageError
from withstand.files import spelled
from withstand.hints import near
from withstand.processes.identity import Identity
from withstand.spec.stack import name_in_file
from withstand.spec.stack_tables import differing
from withstand.stack.aims import with_aims
from withstand.stack.blueprint import Blueprint, Process
from withstand.stack.health import dead, is_named_by_another, restart_line, why_down
from withstand.stack.settled import settled_stack
from withstand.stack.standing import Standing, check_readable, is_at_rest, standing_of, standings, supervisors_end
from withstand.stack.state import StackState, UnitState
from withstand.stack.supervision import Phase
from withstand.stack.unborn import unborn

if TYPE_CHECKING:
    from rich.console import Console

_MB = 1e6
_WRITES_S, _LOOK_S = 1.0, 0.1


def name_of(typed: str) -> str:
    """A stack's name, or that of the stack in a file; no name has a dot in it.

    Raises:
        UsageError: the file cannot be read.
    """
    return name_in_file(Path(typed)) if Path(typed).suffix else typed


def check_file(standing: Standing, typed: str) -> None:
    """Of a stack that is named: by its file, as that is now, or by one that asks for just the same.

    Raises:
        UsageError: it is another file's.
    """
    path, blueprint = Path(typed), standing.blueprint
    if not path.suffix or blueprint.file is None or spelled(path.resolve()) == blueprint.file:
        return
    wanted = None
    with suppress(UsageError):
        wanted = settled_stack(path)
    if wanted is None or differing(blueprint.made_of, wanted):
        raise UsageError(is_named_by_another(blueprint, typed, wanted))


def is_down(typed: str) -> bool:
    """Whether nothing at all is left of the stack of that name or file, as after a first ``down``.

    Raises:
        WithstandError: the file cannot be read, or what stands of the stack.
    """
    name = name_of(typed)
    check_readable(name)
    return name not in {standing.name for standing in standings()}


def meant(name: str | None, *, or_all: bool = False) -> Standing:
    """The one of that name or file; without one the only one that is up, or that there is.

    Raises:
        UsageError: there is none, it is not that file's, or which one is not said, for which there may be ``--all``.
    """
    found = standings()
    if name is not None:
        typed, name = name, name_of(name)
        for standing in found:
            if standing.name == name:
                check_file(standing, typed)
                return standing
        raise not_there(name, found)
    if (alone := only(found)) is None:
        raise UsageError(
            f"Name a stack{', or take --all' * or_all}: {_there_are(found)}."
            if found
            else "No stack is up; withstand up STACK.toml."
        )
    return alone


def only(found: Sequence[Standing]) -> Standing | None:
    """The one that is up, whatever is left of others that have failed, or else the one that there is."""
    up = [standing for standing in found if standing.is_up] or found
    return up[0] if len(up) == 1 else None


def not_there(name: str, found: Sequence[Standing], services: Sequence[str] = ()) -> UsageError:
    """Of a name that none of those has, nor any of the services that it may be one of.

    Raises:
        EngineError: what stands of it cannot be read.
    """
    check_readable(name)
    for folder in unborn(name):
        return UsageError(f"The stack {name!r} did not come up; its logs: {folder / 'logs'}; withstand down {name}.")
    hint = near(name, [*(standing.name for standing in found), *services])
    what = f"There is no stack {'and no service ' if services else ''}{name!r}{hint}; {_there_are(found)}"
    return UsageError(f"{what}, and the services {', '.join(services)}." if services else f"{what}.")


def refuse_held(standing: Standing, what: str, *, force: bool) -> None:
    """Of one that a run has for itself; ``what`` would be done to it.

    Raises:
        UsageError: it would be done under that run, and not by ``--force``.
    """
    if standing.held and not force:
        raise UsageError(f"{standing.held}; end that run, or {what} under it by --force.")


def _there_are(found: Sequence[Standing]) -> str:
    return f"there {'is' if len(found) == 1 else 'are'} {', '.join(s.name for s in found)}" if found else "none is up"


def aimed(options: Mapping[str, Any], plan: dict[str, Any], blueprint: Blueprint) -> dict[str, Any]:
    """The plan with every target's address in the stack.

    Raises:
        UsageError: the options lead elsewhere, or a target to a service that is not there.
    """
    if options.get("base_url") is not None:
        raise UsageError("--base-url: a stack's file says itself where to ask; leave one of the two out.")
    tree = with_aims(plan, blueprint, options.get("model"))
    if options.get("metrics_url"):
        for target in (tree["target"], *tree.get("targets", {}).values()):
            target.pop("metrics_urls", None)
    return tree


def in_the_end(look: Callable[[], list[Standing]]) -> list[Standing]:
    """Looked at once more where a service has just ended: its supervisor is about to write that down."""
    give_up_ns = clock.now_ns() + int(_WRITES_S * 1e9)
    while True:
        found = look()
        if not any(standing.late for standing in found) or clock.now_ns() > give_up_ns:
            return found
        clock.sleep_s(_LOOK_S)


def show_standing(standing: Standing) -> None:
    """Of a stack that has come up, as it is now."""
    for now in in_the_end(lambda: [standing_of(standing.name) or standing]):
        write_result(rendered(lambda console, shown=now: draw_standing(shown, console)))  # type: ignore[misc]


def draw_standing(standing: Standing, console: "Console") -> None:
    """Its services, a line each; what is no terminal takes lines of any length."""
    from rich.text import Text  # noqa: PLC0415  --help does not need it

    width = console.width if console.is_terminal else None
    for line in (_title(standing), *lines_of(_columns(standing), width)):
        console.print(Text(line), soft_wrap=True)
    for unit in standing.outdated:
        console.print(
            Text(f"{unit.name} has ended, and nothing newer is told: {standing.why_outdated}"), soft_wrap=True
        )
    lost = dead(standing.state) if standing.is_up else []
    for unit in standing.state.units:
        if unit.reason and unit.phase is not Phase.READY:
            cure = f" Start it again: {restart_line(standing.name, [unit])}" if unit in lost else ""
            console.print(Text(f"{unit.name} {why_down(unit)}.{cure}"), soft_wrap=True)


def _columns(standing: Standing) -> list[Column]:
    processes = {process.name: process for process in standing.blueprint.processes}
    rows = [_row(unit, processes[unit.name], standing) for unit in standing.state.units]
    rows += [_row_of_resting(process, standing) for process in standing.blueprint.resting]
    service, kind, phase, since, ready, restarts, memory, pid, address = zip(*rows, strict=True)
    return [
        Column("service", service),
        Column("kind", kind, spare=1),
        Column("is", phase),
        Column("since", since, right=True, spare=3),
        Column("ready in", ready, right=True, spare=5),
        Column("starts again", restarts, spare=2),
        Column("memory", memory, right=True, spare=4),
        Column("pid", pid, right=True, spare=2),
        Column("address", address),
    ]


def _row(unit: UnitState, process: Process, standing: Standing) -> tuple[str, ...]:
    leader = leader_of(unit)
    return (
        unit.name,
        process.kind,
        _phase(standing, unit),
        _span(max(0.0, clock.wall_s() - unit.since_s)) if unit.since_s else "",
        "" if unit.ready_after_s is None else f"{unit.ready_after_s:.1f} s",
        str(unit.restarts or ""),
        f"{leader.memory_bytes / _MB:,.0f} MB" if leader else "-",
        str(leader.pid) if leader else "-",
        _address(process),
    )


def _row_of_resting(process: Process, standing: Standing) -> tuple[str, ...]:
    phase = "at rest" if is_at_rest(standing, process) else "awake"
    told = phase if standing.is_up else _absence(standing)
    return (process.name, process.kind, told, "", "", "", "-", "-", _address(process))


def _address(process: Process) -> str:
    return process.base_url.removeprefix("http://")


def leader_of(unit: UnitState) -> Identity | None:
    """None = it does not run."""
    return unit.leader if unit.leader and unit.leader.is_alive else None


def _title(standing: Standing) -> str:
    door = f"{standing.name}: {standing.blueprint.door}/v1 · {standing.blueprint.model}"  # as clients take a base URL
    if standing.is_elsewhere:
        return f"{door} (of another machine or container: host {standing.state.host})"
    if not standing.is_up:
        why = standing.state.ended or supervisors_end(standing.folder)
        return f"{door} ({why.rstrip('.')}: withstand down {standing.name})"
    if (holder := standing.holder) is None:
        return door
    if holder.is_alive:
        return f"{door} (for the run of process {holder.pid} alone)"
    return f"{door} (its run, process {holder.pid}, is gone: withstand down {standing.name})"


def _phase(standing: Standing, unit: UnitState) -> str:
    if standing.is_up and unit in standing.outdated:
        return "unknown"
    return unit.phase.value if standing.is_up else _absence(standing)


def _absence(standing: Standing) -> str:
    return "elsewhere" if standing.is_elsewhere else "gone"


def _span(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


class StackTold:
    """What was said already."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._since_s = clock.wall_s()
        self._phases: dict[str, Phase] = {}
        self._is_held_up = False

    def hear(self, state: StackState) -> None:
        """Say what is new."""
        self._look_at(state.supervisor)
        for unit in state.units:
            if self._phases.get(unit.name) is unit.phase or self._quiet:
                continue
            self._phases[unit.name] = unit.phase
            match unit.phase:
                case Phase.STARTING:
                    say(f"{unit.name}: starting")
                case Phase.BACKING_OFF:
                    say(f"{unit.name} {unit.reason.rstrip('.')}; it is started again")
                case Phase.READY if unit.since_s < self._since_s:
                    say(f"{unit.name}: up already, for {_span(self._since_s - unit.since_s)}")
                case Phase.READY:
                    say(f"{unit.name}: ready after {unit.ready_after_s:.1f} s")

    def _look_at(self, supervisor: Identity) -> None:
        """Held up, it tells nothing, and nobody would know before the services' time is over."""
        was, self._is_held_up = self._is_held_up, supervisor.is_held_up
        if self._is_held_up and not (was or self._quiet):
            pid = supervisor.pid
            say(f"The stack's supervisor, process {pid}, is stopped and does not answer; kill -CONT {pid} wakes it.")
