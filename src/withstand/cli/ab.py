"""``withstand ab``: two sides measured in turn."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from withstand.app.ab import Sides, resume_ab, run_ab
from withstand.app.foretold import check_asked, check_plan
from withstand.app.home import NOWHERE, check_goes_on, home_of
from withstand.app.plans import NAMES
from withstand.app.retold import named
from withstand.app.screen import Screen
from withstand.cli.announced import announced, kept
from withstand.cli.build import build_plan
from withstand.cli.named import load_of, named_plan
from withstand.cli.options import (
    TYPED_PATH,
    Verb,
    budget_option,
    load_options,
    output_options,
    price_options,
    target_options,
    workload_options,
)
from withstand.cli.outcome import show_ab
from withstand.cli.output import say
from withstand.cli.resumed import refuse_anothers, refuse_others
from withstand.cli.screen import terminal_screen
from withstand.cli.side import file_of, labelled, tree_of
from withstand.cli.stacks import StackTold, aimed
from withstand.cli.typed import without_secrets
from withstand.control.interleaving import blocks_of
from withstand.errors import UsageError
from withstand.files import is_there
from withstand.runs import AskedSide
from withstand.spec import plan_from_file
from withstand.spec.file_kinds import refuse_others as refuse_other_kinds
from withstand.spec.mistake import of_file
from withstand.spec.stack import Stack, is_stack
from withstand.spec.targets import laid_over_tree
from withstand.stack.blueprint import Blueprint
from withstand.stack.local import standing_for
from withstand.stack.settled import settled_tree

_BLOCKS = 8


@click.command("ab", cls=Verb)
@click.argument("sides", metavar="[A B | STACK.toml]", nargs=-1)
@click.option("--blocks", type=int, metavar="N", default=_BLOCKS, help=f"Blocks a side, an even number; {_BLOCKS}.")
@click.option(
    "--plan", "plan", metavar="FILE|NAME", help=f"The load of URLs, or of a stack; {', '.join(NAMES)} come along."
)
@click.option("--no-reset-cache", is_flag=True, help="Do not ask servers to forget prompts before each block.")
@click.option("--force", is_flag=True, help="Compare although the models differ; the result is marked.")
@workload_options
@load_options
@budget_option
@target_options
@price_options
@click.option("--goodput", multiple=True, metavar="NAME:MS", help="A limit of good requests: ttft:500; again for more.")
@click.option("--output-dir", type=TYPED_PATH, metavar="DIR", help="The folder; runs/<date-time> by default.")
@click.option("--resume", "folder", type=TYPED_PATH, metavar="DIR", help="Measure what is left, at its STACK.toml too.")
@click.option("--set", "set_path", multiple=True, metavar="PATH=VALUE", help="Any field of both plans; again for more.")
@output_options
@click.pass_context
def verb(
    context: click.Context, /, sides: tuple[str, ...], folder: Path | None, quiet: bool, as_json: bool, **options: Any
) -> int:
    """Measure two sides in turn, block by block: what drifts falls out. The order is A B B A B A A B.

    A side is a URL, a plan file, or `embedded`, as LABEL=SIDE if it shall have a name; options hold for both. Or give
    one STACK.toml whose plan has two targets: it is brought up, and taken down afterwards. Both sides of a pair get the
    same prompts, each pair others.
    """
    stack = _stack(sides, options["plan"])
    if folder:
        refuse_others(context, "A and B", *(["sides"] if stack else []))
        refuse_anothers(folder, "ab")
        if stack and (other := check_goes_on(folder, Path(sides[0]), stack)) and not quiet:
            say(other)
    blocks_of(options["blocks"])  # what is wrong with it is said before a stack is brought up
    asked = None if folder or stack else _asked(sides, options)
    with terminal_screen(quiet=quiet, plain=options["plain"], blocks=False) as screen, ExitStack() as up:
        drawn: Screen = screen
        home = NOWHERE
        if stack:
            with of_file(Path(sides[0])):
                told, look = StackTold(quiet=quiet).hear, partial(_look, stack, options)
                look_at = bool if folder else look
                standing = up.enter_context(standing_for(stack, screen.step, told, look_at, Path(sides[0])))
                asked = None if folder else _asked_of(stack, options, standing.blueprint)
            drawn = announced(screen, standing)
            home = home_of(Path(sides[0]), standing, None if options["plan"] else stack.plan)
        if asked is None:
            assert folder
            outcome = resume_ab(folder, screen=drawn, home=home)
        else:
            argv = without_secrets(context.obj)
            outcome = run_ab(asked, output_dir=options["output_dir"], argv=argv, screen=drawn, home=home)
        kept(drawn, outcome.folder)
    return show_ab(outcome, as_json=as_json)


def _stack(sides: tuple[str, ...], named: str | None) -> Stack | None:
    """A stack's file, where that is all that is given, with the load of ``--plan`` where one is named."""
    path = Path(sides[0]) if len(sides) == 1 else None
    if path is None or not is_there(path):
        return None
    tree = plan_from_file(path)
    refuse_other_kinds(path, tree, "a stack's", "stack")
    if not is_stack(tree):
        return None
    stack, told = settled_tree(tree, path), str(path)
    if named:
        load = load_of(named, stack.plan)
        told = told if load.get("targets") is stack.plan.get("targets") else named
        stack = replace(stack, plan=load)
    targets = stack.plan.get("targets", {})
    if len(targets) > 2:
        names = ", ".join(targets)
        raise UsageError(
            f"ab measures two sides, and {told} has {len(targets)} targets ({names}): leave two, or measure all "
            f"with `withstand run {path}`."
        )
    if len(targets) < 2:
        raise UsageError(
            f"ab measures two sides: {told} needs two [plan.targets.NAME], with the service that each asks."
        )
    return stack


def _look(stack: Stack, options: dict[str, Any], blueprint: Blueprint) -> None:
    """What is wrong with a side is said before the stack is brought up for it."""
    sides = _asked_of(stack, options, blueprint)
    for side, check in ((sides.a, check_plan), (sides.b, check_asked)):  # of the same load
        with named(side.label):
            check(side.plan)


def _asked_of(stack: Stack, options: dict[str, Any], blueprint: Blueprint) -> Sides:
    """Its plan's targets."""
    tree = aimed(options, stack.plan, blueprint)
    base, targets = tree["target"], tree.pop("targets")
    own = options | {"output_dir": None}
    a, b = (
        AskedSide(label=label, plan=build_plan(own, tree | {"target": laid_over_tree(base, target)}))
        for label, target in targets.items()
    )
    return _in_turn(a, b, options)


def _asked(sides: tuple[str, ...], options: dict[str, Any]) -> Sides:
    if len(sides) != 2 or options["base_url"] is not None:
        raise UsageError("ab measures two sides: give A and B, each a URL, a plan file, or `embedded`; no --base-url.")
    load = named_plan(options["plan"]) if options["plan"] else {}
    own = options | {"output_dir": None}
    a, b = (
        AskedSide(label=label, plan=build_plan(own, tree_of(side, load), file_of(side)))
        for label, side in labelled(sides)
    )
    return _in_turn(a, b, options)


def _in_turn(a: AskedSide, b: AskedSide, options: dict[str, Any]) -> Sides:
    return Sides(a=a, b=b, pairs=options["blocks"], reset_cache=not options["no_reset_cache"], force=options["force"])
