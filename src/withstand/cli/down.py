"""``withstand down``: the end of a stack."""

from pathlib import Path

import click

from withstand.cli.options import Verb
from withstand.cli.output import say, write_result
from withstand.cli.stacks import is_down, meant, name_of, refuse_held
from withstand.errors import EngineError, UsageError, WithstandError
from withstand.stack.standing import Standing, check_readable, standings
from withstand.stack.taking_down import take_down
from withstand.stack.unborn import remove_unborn


@click.command("down", cls=Verb)
@click.argument("name", metavar="[NAME|STACK.toml]", required=False)
@click.option("--all", "everything", is_flag=True, help="All stacks of this user.")
@click.option("--force", is_flag=True, help="Also one that a run measures alone, which fails then.")
def verb(name: str | None, *, everything: bool, force: bool) -> None:
    """Take a stack down, and leave nothing behind.

    Services end in the reverse order of their start. Without NAME the only one that is up is meant. That the stack of
    a file is not up is no error: it is down.
    """
    if everything and name is not None:
        raise UsageError("--all takes all stacks down; leave the name out, or --all.")
    if (everything or name is not None) and (gone := remove_unborn(name and name_of(name))):
        write_result(f"Removed the logs of {', '.join(gone)}, which did not come up.")
        if name is not None:
            return
    if name is not None and Path(name).suffix and is_down(name):
        write_result(f"{name_of(name)} is not up.")
        return
    if not everything:
        _end(meant(name, or_all=True), force=force)
        return
    trouble: WithstandError | None = None
    for standing in standings():
        try:
            _end(standing, force=force)
        except WithstandError as e:  # the others end all the same
            if trouble:
                say(f"withstand: {trouble}")
            trouble = e
    if trouble:
        raise trouble
    check_readable()


def _end(standing: Standing, *, force: bool) -> None:
    refuse_held(standing, "take the stack down", force=force)
    if left := take_down(standing):
        numbers = ", ".join(str(one.pid) for one in left)
        raise EngineError(f"Processes of {standing.name!r} could not be ended: {numbers}; are they another user's?")
    write_result(f"{standing.name} is down.")
