"""``withstand compare``: what was measured against what was measured before, or elsewhere, or by others."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from withstand import clock
from withstand.app.compare import compare_paths, token_price_in
from withstand.app.prices import prices_of, token_price_of
from withstand.app.subjects import others_than
from withstand.cli.delivery import deliver, form_of
from withstand.cli.options import TYPED_PATH, Verb, percentage
from withstand.cli.output import rendered, say
from withstand.compare.build import NEGLIGIBLE_PERCENT, Options
from withstand.compare.decision import decide
from withstand.compare.gate import gated
from withstand.compare.shape import Comparison, Decision
from withstand.report.comparison import render
from withstand.report.comparison_text import print_comparison

_GOOD, _MISSED = 0, 1
_FORMS = ("text", "json", "markdown", "csv", "html", "llmd")
_SUFFIXES = {".json": "json", ".md": "markdown", ".csv": "csv", ".html": "html", ".yaml": "llmd"}


def _percent(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    number = percentage(value)
    if number is None:
        raise click.BadParameter(f"{value!r} is no percentage, such as 5%.")
    return number


def _aim(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Above 0."""
    number = _percent(context, option, value)
    if number == 0:
        raise click.BadParameter("no measurement is long enough to show a difference of 0 %; give 5%, say.")
    return number


@click.command("compare", cls=Verb)
@click.argument("sides", metavar="A [B …]", nargs=-1, required=True)
@click.option("--by", metavar="FIELD", help="Split each file into sides by this field, such as framework.")
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Only this one, with all its statistics.")
@click.option("--force", is_flag=True, help="Compare although conditions differ; the result is marked.")
@click.option(
    "--negligible",
    callback=_percent,
    metavar="PERCENT",
    default=f"{NEGLIGIBLE_PERCENT:g}%",
    help="Smaller differences do not matter; 1% by default.",
)
@click.option("--aim", callback=_aim, metavar="PERCENT", help="Tell how long to measure to show such a difference.")
@click.option("--baseline", metavar="PATH", help="Compare all others with this.")
@click.option(
    "--fail-if-slower",
    callback=_percent,
    metavar="PERCENT",
    help="Exit with 1 where a side is shown to be worse by more, or gave nothing.",
)
@click.option(
    "--price-per-hour",
    "prices",
    metavar="[LABEL=]X",
    multiple=True,
    help="What an hour costs: adds who is cheapest. By default what `run` was told.",
)
@click.option(
    "--against-token-price",
    "elsewhere",
    metavar="IN:OUT[:CACHED]",
    callback=lambda _context, _option, value: None if value is None else token_price_of(value),
    help="What a million tokens cost elsewhere: adds from which load on a side is cheaper.",
)
@click.option("--format", "form", type=click.Choice(_FORMS), help="By default what FILE ends in, else text.")
@click.option("--output", type=TYPED_PATH, metavar="FILE", help="Write there instead of stdout.")
def verb(
    sides: tuple[str, ...],
    baseline: str | None,
    fail_if_slower: float | None,
    form: str | None,
    output: Path | None,
    **asked: Any,
) -> int:
    """Compare measurements at equal conditions: differences, how sure they are, and a verdict.

    A side is a run folder, or a result file or folder of another tool, as LABEL=PATH if it shall have a name. Several
    paths with commas between them, or a folder of run folders, are repeats of one side. The first side is the baseline.
    """
    options = Options(
        metrics=asked["metrics"],
        negligible_percent=asked["negligible"],
        aim_percent=asked["aim"],
        force=asked["force"],
    )
    form = form or form_of(output, _SUFFIXES)
    comparison = compare_paths(sides if baseline is None else _against(baseline, sides), asked["by"], options)
    if fail_if_slower is not None:
        comparison = gated(comparison, fail_if_slower)
    prices = prices_of(asked["prices"], {side.label: side.price_per_hour for side in comparison.sides})
    elsewhere = asked["elsewhere"] or token_price_in(comparison)
    _show(comparison, decide(comparison, prices, elsewhere), form, output)
    if comparison.gate is None:
        return _GOOD
    say(f"withstand: {comparison.gate.sentence}")
    return _MISSED if comparison.gate.failed else _GOOD


def _against(baseline: str, sides: Sequence[str]) -> list[str]:
    """The baseline and all others; compared with itself it would be one test more, and tell nothing."""
    others = others_than(baseline, sides)
    if len(others) < len(sides):
        say(f"withstand: {baseline} is the baseline and is not compared with itself.")
    return [baseline, *others]


def _show(comparison: Comparison, decisions: Sequence[Decision], form: str, output: Path | None) -> None:
    if form == "text":
        text = rendered(lambda console: print_comparison(comparison, decisions, console))
    else:
        text = render(comparison, form, decisions=decisions, now=clock.utc_iso(clock.anchor().wall_ns))
    deliver(text, output)
