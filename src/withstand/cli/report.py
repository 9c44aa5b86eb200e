"""``withstand report``: run folders and other tools' result files → text, JSON, Markdown, CSV or HTML."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from withstand.app.loaded import Loaded
from withstand.app.report import damage_told, load_runs
from withstand.cli.block import stage_block
from withstand.cli.delivery import deliver, form_of
from withstand.cli.options import TYPED_PATH, Verb, day_options, price_options
from withstand.cli.output import columns, rendered, say
from withstand.cli.price import price_told
from withstand.errors import UsageError
from withstand.report.classic import Style
from withstand.report.csv import csv_text
from withstand.report.economy import why_no_day, why_no_price
from withstand.report.html import render_html
from withstand.report.imported import imported_text
from withstand.report.json import summary_json
from withstand.report.limit import print_limit
from withstand.report.markdown import markdown
from withstand.report.terminal import print_report

_FORMATS: Mapping[str, Callable[[Loaded], str]] = {
    "json": lambda loaded: summary_json(loaded.summary, loaded.limit).decode(),
    "csv": lambda loaded: csv_text(loaded.summary, loaded.limit),
    "html": lambda loaded: render_html(loaded.summary, loaded.series, loaded.about, loaded.limit),
}
_GOOD, _NOT_READ = 0, 3
_SUFFIXES = {".json": "json", ".md": "markdown", ".csv": "csv", ".html": "html"}


@click.command("report", cls=Verb)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=TYPED_PATH)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", *_FORMATS]),
    help="By default what FILE ends in, else text.",
)
@click.option("--output", type=TYPED_PATH, metavar="FILE", help="Write there instead of stdout.")
@click.option(
    "--style",
    type=click.Choice(["vllm", "sglang"]),
    default="vllm",
    help="Whose block the text shows; vllm's by default.",
)
@price_options
@day_options
@click.option("--tokens", is_flag=True, help="Show the token ledger also where all counts agree.")
def verb(
    paths: tuple[Path, ...],
    form: str | None,
    output: Path | None,
    style: Style,
    *,
    tokens: bool,
    **cost: Any,
) -> int:
    """Show what runs came to, also of a run that was cut.

    PATH is a run folder, or a result file or folder of another tool. Of several, the stages are shown side by side.
    Prices are those that `run` was told, unless they are given here.
    Exit code 3: one of them is damaged, and the others are shown; or nothing was measured.
    """
    form = form or form_of(output, _SUFFIXES)
    if tokens and form in _FORMATS:
        raise UsageError(f"--tokens is for text and Markdown; {form} always has the token ledger.")
    price = price_told(cost)
    loaded = load_runs(paths, price, charts=form == "html")
    for notice in loaded.notices:
        say(notice)
    if loaded.summary.partial:
        say(loaded.summary.partial)
    if loaded.damaged_lines:
        say(f"Left out: {damage_told(loaded.damaged_lines)}")
    if price and price.usage and (missing := why_no_day(loaded.summary)):
        say(f"withstand: {missing}")
    if price and price.per_gpu_hour is not None and (missing := why_no_price(loaded.summary)):
        say(f"withstand: {missing}")
    for unread in loaded.unread:
        say(f"withstand: {unread}")
    deliver(_text(loaded, style, tokens=tokens) if form == "text" else _exported(loaded, form, tokens=tokens), output)
    return _GOOD if not loaded.unread and (loaded.summary.stages or loaded.imported) else _NOT_READ


def _exported(loaded: Loaded, form: str, *, tokens: bool) -> str:
    return markdown(loaded.summary, loaded.limit, ledger=tokens) if form == "markdown" else _FORMATS[form](loaded)


def _text(loaded: Loaded, style: Style, *, tokens: bool) -> str:
    if loaded.imported:
        summary, title = loaded.summary, loaded.about.title
        shown = rendered(lambda console: print_report(summary, console, title=title)) if summary.stages else ""
        return f"{shown}\n{imported_text(loaded.imported, columns())}"
    backend = loaded.summary.backend
    blocks = [f"{stage_block(stage, style, backend=backend)}\n" for stage in loaded.summary.stages]
    shown = rendered(lambda console: print_report(loaded.summary, console, ledger=tokens))
    limit = loaded.limit
    return "\n".join([*blocks, shown, *([rendered(lambda console: print_limit(limit, console))] if limit else [])])
