"""``withstand find-limit``: what can be promised of an endpoint."""

from pathlib import Path
from typing import Any

import click
import msgspec

from withstand.app.hunter import searching
from withstand.app.limit import limit_in
from withstand.app.run import resume, run
from withstand.cli.build import build_plan
from withstand.cli.options import (
    TYPED_PATH,
    Verb,
    budget_option,
    output_options,
    percentage,
    price_option,
    target_options,
    workload_options,
)
from withstand.cli.outcome import show_limit
from withstand.cli.screen import terminal_screen
from withstand.cli.typed import without_secrets
from withstand.errors import UsageError
from withstand.runs import RunFolder
from withstand.spec import plan_from_file, promise_of


@click.command("find-limit", cls=Verb)
@click.argument("plan", metavar="[PLAN.toml|.yaml|.json]", required=False, type=TYPED_PATH)
@click.option(
    "--slo",
    "promises",
    multiple=True,
    metavar="NAME:pNN:MS",
    help="A promise: ttft:p95:500, tpot, itl, e2el, response, or success:99%; again for more.",
)
@click.option("--axis", type=click.Choice(["rate", "concurrency"]), help="What is searched; rate by default.")
@click.option("--start", type=click.FloatRange(min=0, min_open=True), metavar="LOAD", help="The first load to try.")
@click.option("--precision", metavar="PERCENT", help="How narrow the interval shall be; 5% by default.")
@click.option("--probe", "probe_s", type=float, metavar="SECONDS", help="The most for one load; 120.")
@budget_option
@target_options
@workload_options
@price_option("What an hour of the servers costs: adds the price of a million tokens.")
@click.option("--output-dir", metavar="DIR", help="The run's folder; runs/<date-time> by default.")
@click.option("--resume", "folder", type=TYPED_PATH, metavar="DIR", help="Go on with a search.")
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
    from_file = plan_from_file(plan) if plan else {}
    with terminal_screen(quiet=quiet, blocks=False) as screen:
        if folder:
            outcome = resume(folder, screen=screen)
        else:
            asked = build_plan(options | {"find_limit": _asked(options)}, from_file)
            if asked.targets:
                raise UsageError("find-limit searches one target; give --base-url, or a plan without [targets].")
            outcome = run(searching(asked), argv=without_secrets(context.obj), screen=screen)
    limit = limit_in(RunFolder.open(outcome.folder).manifest)
    if limit is None:
        raise UsageError(f"{outcome.folder} looked for no limit; `withstand run --resume` goes on with it.")
    return show_limit(outcome, limit, as_json=as_json)


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    """What was typed; the rest is the plan file's, or its own default."""
    typed = {
        "promises": [msgspec.to_builtins(promise_of(text)) for text in options["promises"]],
        "axis": options["axis"],
        "start": options["start"],
        "precision": _share(options["precision"]),
        "probe_s": options["probe_s"],
        "budget_s": options.pop("budget_s"),
    }
    return {name: value for name, value in typed.items() if value not in (None, [])}


def _share(text: str | None) -> float | None:
    """``5%`` is 0.05."""
    if text is None:
        return None
    number = percentage(text)
    if number is None:
        raise UsageError(f"--precision: {text!r} is no percentage, such as 5%.")
    return number / 100
