"""``withstand up``: a stack, on this machine."""

from pathlib import Path

import click

from withstand.cli.options import TYPED_PATH, Verb
from withstand.cli.output import rendered, write_result
from withstand.cli.screen import terminal_screen
from withstand.cli.stacks import StackTold, draw_standing
from withstand.spec.stack import stack_from_file
from withstand.stack.local import bring_up


@click.command("up", cls=Verb)
@click.argument("path", metavar="STACK.toml", type=TYPED_PATH)
@click.option("--quiet", is_flag=True, help="Say nothing on the way.")
def verb(path: Path, *, quiet: bool) -> None:
    """Bring up a stack: engines, gateway, and what else its file names.

    It goes on when this terminal is closed. `withstand run STACK.toml` measures it, `withstand ps` shows it, `withstand
    down` ends it. If one service does not come up, none is left.
    """
    stack = stack_from_file(path)
    told = StackTold(quiet=quiet)
    with terminal_screen(quiet=quiet, plain=True, blocks=False) as screen:
        standing = bring_up(stack, screen.step, told.hear)
    write_result(rendered(lambda console: draw_standing(standing, console)))
