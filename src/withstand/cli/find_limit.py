"""``withstand find-limit``: what can be promised of an endpoint."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
import msgspec

from withstand.app.hunter import searching
from withstand.app.run import resume, run
from withstand.cli.build import build_plan, loads_as
from withstand.cli.options import (
    TYPED_PATH,
    Between,
    Verb,
    budget_option,
    output_options,
    percentage,
    price_options,
    target_options,
    workload_options,
)
from withstand.cli.outcome import show_limit
from withstand.cli.resumed import refuse_anothers, refuse_others
from withstand.cli.screen import terminal_screen
from withstand.cli.times import SECONDS
from withstand.cli.typed import without_secrets
from withstand.errors import UsageError
from withstand.spec import plan_from_file, promise_of
from withstand.spec.file_kinds import refuse_others as refuse_other_kinds
from withstand.spec.mistake import of_file
from withstand.spec.promise import cost_of, is_cost


@click.command("find-limit", cls=Verb)
@click.argument("plan", metavar="[PLAN.toml|.yaml|.json]", required=False, type=TYPED_PATH)
@click.option(
    "--slo",
    "promises",
    multiple=True,
    metavar="NAME:pNN:MS",
    help="ttft:p95:500 (or tpot, itl, e2el, response), success:99%, cost:0.8 (of 1M output tokens); again for more.",
)
@click.option("--axis", type=click.Choice(["rate", "concurrency"]), help="What is searched; rate by default.")
@click.option("--start", type=Between(min=0, min_open=True), metavar="LOAD", help="The first load to try.")
@click.option("--precision", metavar="PERCENT", help="How narrow the interval shall be; 5% by default.")
@click.option(
    "--probe", "probe_s", type=SECONDS, metavar="TIME", help="The most for one load; by default 120, or more."
)
@budget_option
@target_options
@workload_options
@price_options
@click.option("--output-dir", type=TYPED_PATH, metavar="DIR", help="The run's folder; runs/<date-time> by default.")
@click.option(
    "--resume", "folder", type=TYPED_PATH, metavar="DIR", help="Go on with a search; with --budget, for so much longer."
)
@click.option("--set", "set_path", multiple=True, metavar="PATH=VALUE", help="Any field of the plan; again for more.")
@output_options
@click.pass_context
def verb(
    context: click.Context, /, plan: Path | None, folder: Path | None, quiet: bool, as_json: bool, **options: Any
) -> int:
    """Find the largest load that keeps what you promise.

    Each load is held until it is known whether it keeps them: doubling, then halving the distance. The result is a
    rate with an interval, and which promise broke first.
    """
    if folder:
        refuse_others(context, "the plan file", "budget_s")
        refuse_anothers(folder, "find-limit")
    from_file = _plan_of(plan) if plan else {}
    with terminal_screen(quiet=quiet, plain=options["plain"], blocks=False) as screen:
        if folder:
            outcome = resume(folder, screen=screen, more_s=options["budget_s"])
        else:
            asked = build_plan(options | {"find_limit": _asked(options)}, from_file, plan)
            if asked.targets:
                raise UsageError("find-limit searches one target; give --base-url, or a plan without [targets].")
            with of_file(plan) if plan and loads_as(asked, from_file) else nullcontext():
                outcome = run(searching(asked), argv=without_secrets(context.obj), screen=screen)
    if outcome.limit is None:
        raise UsageError(f"{outcome.folder} looked for no limit; `withstand run --resume` goes on with it.")
    return show_limit(outcome, outcome.limit, as_json=as_json)


def _plan_of(path: Path) -> dict[str, Any]:
    tree = plan_from_file(path)
    refuse_other_kinds(path, tree, "a plan")
    return tree


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    """What was typed; the rest is the plan file's, or its own default."""
    typed = {
        "promises": [msgspec.to_builtins(promise_of(text)) for text in options["promises"] if not is_cost(text)],
        "cost": _cost(options["promises"]),
        "axis": options["axis"],
        "start": options["start"],
        "precision": _share(options["precision"]),
        "probe_s": options["probe_s"],
        "budget_s": options.pop("budget_s"),
    }
    if typed["cost"] is not None and not typed["promises"]:
        raise UsageError(
            "--slo cost: a price is an end from below; promise something that more load breaks too: --slo ttft:p95:500."
        )
    return {name: value for name, value in typed.items() if value not in (None, [])}


def _cost(promises: Sequence[str]) -> float | None:
    """None = none is promised."""
    costs = [cost_of(text) for text in promises if is_cost(text)]
    if len(costs) > 1:
        raise UsageError("--slo: tokens have two prices that they may cost; give one of them.")
    return costs[0] if costs else None


def _share(text: str | None) -> float | None:
    """``5%`` is 0.05."""
    if text is None:
        return None
    number = percentage(text)
    if number is None:
        raise UsageError(f"--precision: {text!r} is no percentage, such as 5%.")
    return number / 100
