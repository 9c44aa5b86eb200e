"""``withstand ps``: the stacks that are up."""

import click
import msgspec

from withstand.cli.options import Verb
from withstand.cli.output import rendered, write_result
from withstand.cli.stacks import check_file, draw_standing, in_the_end, leader_of, name_of, not_there
from withstand.stack.health import dead, restart_line
from withstand.stack.standing import Standing, check_readable, is_at_rest, no_room, standings
from withstand.stack.supervision import Phase


@click.command("ps", cls=Verb)
@click.argument("name", metavar="[NAME|STACK.toml]", required=False)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def verb(name: str | None, *, as_json: bool) -> int:
    """Show the stacks that are up, and how their services stand.

    The exit code is 1 where a service, or what minds it, has failed and stays so, or starts in vain, and 2 where there
    is no stack NAME.
    """
    typed, name = name, name and name_of(name)
    found = in_the_end(lambda: [each for each in standings() if name in (None, each.name)])
    if name is not None and not found:
        raise not_there(name, standings())
    for standing in found if typed else []:
        check_file(standing, typed or "")
    if as_json:
        write_result(msgspec.json.format(msgspec.json.encode([_told(each) for each in found]), indent=2).decode())
    else:
        _draw(found)
    check_readable(name)
    if not found and not as_json:
        write_result("No stack is up.")
    return int(any(_cure(standing) or standing.outdated for standing in found))


def _draw(found: list[Standing]) -> None:
    for standing in found:
        write_result(rendered(lambda console, shown=standing: draw_standing(shown, console)))  # type: ignore[misc]


def _cure(standing: Standing) -> str | None:
    """The command for a stack that will not get well by itself; another machine's is not ours to mend."""
    if standing.is_elsewhere:
        return None
    if not standing.is_up:
        return f"withstand down {standing.name}"
    if standing.outdated and not no_room(standing.folder):
        return f"withstand down {standing.name}"
    lost = dead(standing.state)
    return restart_line(standing.name, lost) if lost else None


def _told(standing: Standing) -> dict[str, object]:
    processes = {process.name: process for process in standing.blueprint.processes}
    holder = standing.holder
    outdated = {unit.name: standing.why_outdated for unit in standing.outdated}
    return {
        "name": standing.name,
        "up": standing.is_up,
        "ready": standing.is_up and not outdated and all(unit.phase is Phase.READY for unit in standing.state.units),
        "cure": _cure(standing),
        "elsewhere": standing.is_elsewhere,
        "held_by": {"pid": holder.pid, "alive": holder.is_alive} if holder else None,
        "base_url": f"{standing.blueprint.door}/v1",
        "model": standing.blueprint.model,
        "supervisor": standing.state.supervisor.pid,
        "services": [
            {
                "name": unit.name,
                "kind": processes[unit.name].kind,
                "phase": "unknown" if unit.name in outdated else unit.phase,
                "base_url": processes[unit.name].base_url,
                "pid": leader.pid if leader else None,
                "memory_bytes": leader.memory_bytes if leader else None,
                "ready_after_s": unit.ready_after_s,
                "restarts": unit.restarts,
                "reason": outdated.get(unit.name) or unit.reason or None,
            }
            for unit in standing.state.units
            for leader in [leader_of(unit)]
        ],
        "left_to_gateway": [
            {
                "name": process.name,
                "kind": process.kind,
                "at_rest": is_at_rest(standing, process) if standing.is_up else None,
                "base_url": process.base_url,
            }
            for process in standing.blueprint.resting
        ],
    }
