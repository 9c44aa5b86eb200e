"""``withstand up``: a stack, on this machine."""

from functools import partial
from pathlib import Path

import click

from withstand.app.foretold import check_plan
from withstand.cli.build import build_plan
from withstand.cli.options import TYPED_PATH, Verb
from withstand.cli.output import write_result
from withstand.cli.screen import terminal_screen
from withstand.cli.stacks import StackTold, aimed, show_standing
from withstand.errors import UsageError
from withstand.spec.mistake import of_file
from withstand.spec.stack import Stack
from withstand.stack.blueprint import Blueprint
from withstand.stack.composed import wanted_small
from withstand.stack.flags import checked
from withstand.stack.local import bring_up, planned
from withstand.stack.secrets import environment
from withstand.stack.settled import settled_stack
from withstand.stack.small import undone


@click.command("up", cls=Verb)
@click.argument("path", metavar="STACK.toml", type=TYPED_PATH)
@click.option("--quiet", is_flag=True, help="Say nothing on the way.")
@click.option(
    "--check",
    is_flag=True,
    help="Start nothing: only say what is wrong with it, and ask installed engines for their options.",
)
def verb(path: Path, *, quiet: bool, check: bool) -> None:
    """Bring up a stack: engines, gateway, and what else its file names.

    It goes on when this terminal is closed. `withstand run STACK.toml` measures it, `withstand ps` shows it, `withstand
    down` ends it. If one service does not come up, none is left.
    """
    told = StackTold(quiet=quiet)
    with of_file(path), terminal_screen(quiet=quiet, plain=True, blocks=False) as screen:
        stack = settled_stack(path)
        if check:
            blueprint = planned(stack)
            _check_load(stack, blueprint)
            _check(blueprint)
            if missing := list(undone(wanted_small(stack))):
                write_result(f"The small model is not ready here: it would first be {', then '.join(missing)}\n")
            return
        standing = bring_up(stack, screen.step, told.hear, partial(_check_load, stack), path)
    show_standing(standing)


def _check_load(stack: Stack, blueprint: Blueprint) -> None:
    """Of its plan, where it has one.

    Raises:
        UsageError: it cannot be measured so.
    """
    if stack.plan:
        check_plan(build_plan({}, aimed({}, stack.plan, blueprint)))


def _check(blueprint: Blueprint) -> None:
    """Say it of each engine.

    Raises:
        UsageError: one does not know an option.
    """
    everything = (*blueprint.processes, *blueprint.resting)
    found = checked(everything, {p.name: environment(p.env, p.name) for p in everything})
    for one in found:
        if one.is_asked and not one.unknown:
            write_result(f"{one.name}: {one.why_not or 'every option is known'}\n")
    if others := [one.name for one in found if not one.is_asked]:
        write_result(f"Programs that are there, and are not asked for their options: {', '.join(others)}\n")
    if wrong := [f"{one.name} does not know {', '.join(one.unknown)}" for one in found if one.unknown]:
        raise UsageError(f"{'; '.join(wrong)}. The version that is installed is another one.")
