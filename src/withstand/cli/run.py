"""``withstand run``: options and a plan file → a measurement."""

from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from withstand.app.foretold import check_plan
from withstand.app.home import NOWHERE, Home, check_goes_on, home_of
from withstand.app.plans import LIST, NAMES, listing
from withstand.app.run import resume, run
from withstand.app.screen import Outcome, Screen
from withstand.cli.announced import announced, kept
from withstand.cli.bare import bare_plan
from withstand.cli.build import build_plan, loads_as
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
from withstand.cli.outcome import show_outcome, show_targets
from withstand.cli.output import say, write_result
from withstand.cli.resumed import refuse_anothers, refuse_others
from withstand.cli.screen import terminal_screen
from withstand.cli.stacks import StackTold, aimed
from withstand.cli.typed import without_secrets
from withstand.errors import UsageError
from withstand.files import is_there
from withstand.runs import TargetsFolder
from withstand.spec import Plan, plan_from_file
from withstand.spec.file_kinds import refuse_others as refuse_other_kinds
from withstand.spec.mistake import of_file, of_typed
from withstand.spec.stack import Stack, is_stack
from withstand.stack.blueprint import Blueprint
from withstand.stack.local import standing_for
from withstand.stack.settled import settled_tree

if TYPE_CHECKING:
    from withstand.app.targets import TargetsOutcome


@click.command("run", cls=Verb)
@click.argument("plan", metavar="[PLAN.toml|STACK.toml]", required=False, type=TYPED_PATH)
@target_options
@workload_options
@load_options
@click.option(
    "--plan", "named", metavar="NAME|FILE", help=f"A plan that comes along: {', '.join(NAMES)}; list tells more."
)
@budget_option
@click.option("--goodput", multiple=True, metavar="NAME:MS", help="A limit of good requests: ttft:500; again for more.")
@price_options
@click.option(
    "--precision",
    "precisions",
    multiple=True,
    metavar="NAME:pNN:PERCENT",
    help="A stage ends once this is known so exactly: ttft:p95:5%, e2el:mean:2%; at its limit at the latest.",
)
@click.option("--doctor", is_flag=True, default=None, help="Examine the path first; see `withstand doctor`.")
@click.option("--output-dir", type=TYPED_PATH, metavar="DIR", help="The run's folder; runs/<date-time> by default.")
@click.option("--resume", "folder", type=TYPED_PATH, metavar="DIR", help="Go on with a run that was cut.")
@click.option("--set", "set_path", multiple=True, metavar="PATH=VALUE", help="Any field of the plan; again for more.")
@output_options
@click.pass_context
def verb(
    context: click.Context, /, plan: Path | None, folder: Path | None, quiet: bool, as_json: bool, **options: Any
) -> int | None:
    """Load an endpoint, measure it, report it.

    A stack's file is brought up first, measured by its [plan], and taken down, unless it was up before. What is typed
    wins over the file. Several rates or concurrencies are measured one after the other, as stages.
    `withstand schema plan` lists every field that --set reaches. What was measured at a stack is gone on with by
    `withstand run STACK.toml --resume DIR`.
    """
    if options["named"] == LIST:
        write_result(listing())
        return None
    if folder and plan and not is_there(plan):
        refuse_others(context, "the plan file")
    written = _written(plan, options["named"]) or ({} if folder else bare_plan(options))
    stack = _stack(written, plan, options["named"]) if plan and is_stack(written) else None
    if folder:
        refuse_others(context, "the plan file", *(["plan"] if stack else []))
        refuse_anothers(folder, "run")
        if stack and plan and (other := check_goes_on(folder, plan, stack)) and not quiet:
            say(other)
    argv = without_secrets(context.obj)
    with terminal_screen(quiet=quiet, plain=options["plain"], blocks=not as_json) as screen, ExitStack() as up:
        drawn: Screen = screen
        home = NOWHERE
        if plan and stack:
            with of_file(plan):
                tree = {} if folder else stack.plan
                told = StackTold(quiet=quiet).hear
                look = partial(_look, options, tree, begins=folder is None)
                standing = up.enter_context(standing_for(stack, screen.step, told, look, plan))
                written = aimed(options, tree, standing.blueprint)
            drawn = announced(screen, standing)
            home = home_of(plan, standing, None if options["named"] else stack.plan)
        source = None if stack else _source(plan, options["named"])
        asked = build_plan(options, written, source)
        with _blamed(source, asked, written, is_typed=not folder and not (stack and loads_as(asked, written))):
            outcome = _measured(asked, folder, argv, drawn, home)
        kept(drawn, outcome.folder)
    if isinstance(outcome, Outcome):
        return show_outcome(outcome, as_json=as_json)
    return show_targets(outcome, as_json=as_json)


def _blamed(
    source: Path | None, asked: Plan, written: dict[str, Any], *, is_typed: bool
) -> AbstractContextManager[None]:
    """Who is told of for what is found wrong in a plan: its file, or without one what was typed."""
    if source:
        return of_file(source) if loads_as(asked, written) else nullcontext()
    return of_typed() if is_typed else nullcontext()


def _source(plan: Path | None, named: str | None) -> Path | None:
    """The plan's file; None = it has none of its user's."""
    return plan or (Path(named) if named and named not in NAMES else None)


def _stack(written: dict[str, Any], path: Path, named: str | None) -> Stack:
    """A stack's file, with the load of ``--plan`` where one is named."""
    stack = settled_tree(written, path)
    return replace(stack, plan=load_of(named, stack.plan)) if named else stack


def _look(options: dict[str, Any], tree: dict[str, Any], blueprint: Blueprint, *, begins: bool) -> None:
    """What is wrong with the plan is said before a stack is brought up for it; one that goes on has its folder's."""
    written = aimed(options, tree, blueprint)
    plan = build_plan(options, written)
    if begins:
        with nullcontext() if loads_as(plan, written) else of_typed():
            check_plan(plan)


def _measured(
    asked: Plan, folder: Path | None, argv: list[str], screen: Screen, home: Home
) -> "Outcome | TargetsOutcome":
    """What is asked for, or what is left of a folder's."""
    if asked.targets or (folder and TargetsFolder.is_one(folder)):
        # One run needs no comparison, so it does not wait for that to be loaded.
        from withstand.app.targets import resume_targets, run_targets  # noqa: PLC0415

        if folder:
            return resume_targets(folder, screen=screen, home=home)
        return run_targets(asked, argv=argv, screen=screen, home=home)
    return resume(folder, screen=screen, home=home) if folder else run(asked, argv=argv, screen=screen, home=home)


def _written(path: Path | None, named: str | None) -> dict[str, Any]:
    """A file's tree, that of a plan that comes along, or an empty one."""
    if path is None:
        return named_plan(named) if named else {}
    written = plan_from_file(path)
    refuse_other_kinds(path, written, "a plan's or a stack's", "stack")
    if named and not is_stack(written):
        raise UsageError(f"--plan {named} and the plan file {path} are two plans; give one of them.")
    return written
