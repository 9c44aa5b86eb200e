"""``withstand restart``: services of a stack that is up, once more."""

from pathlib import Path

import click

from withstand.cli.options import Verb
from withstand.cli.stacks import StackTold, meant, refuse_held, show_standing
from withstand.errors import UsageError
from withstand.stack.restarting import restart
from withstand.stack.standing import Standing, standings


@click.command("restart", cls=Verb)
@click.argument("names", metavar="[NAME|STACK.toml] SERVICE…", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Also of one that a run measures alone, whose figures that spoils.")
@click.option("--quiet", is_flag=True, help="Say nothing on the way.")
def verb(names: tuple[str, ...], *, force: bool, quiet: bool) -> None:
    """End services of a stack and start them again.

    It waits until they are ready; also those that have failed may be named. They keep their ports, and the others stay
    as they are. Without NAME the only stack that is up is meant.
    """
    standing, services = _meant(names)
    refuse_held(standing, "start them again", force=force)
    standing = restart(standing, services, StackTold(quiet=quiet).hear)
    show_standing(standing)


def _meant(names: tuple[str, ...]) -> tuple[Standing, tuple[str, ...]]:
    """The first name is a stack's where there is one of it; else all are services."""
    first, *rest = names
    if Path(first).suffix or first in {standing.name for standing in standings()}:
        standing, services = meant(first), tuple(rest)
    else:
        standing, services = meant(None), names
    if not services:
        there = ", ".join(process.name for process in standing.blueprint.processes)
        raise UsageError(f"Name the services of {standing.name!r} that shall start again; it has {there}.")
    return standing, services
