"""``withstand report``: run folders and other tools' result files → text, JSON, Markdown, CSV or HTML."""

from collections.abc import Callable, Mapping
from pathlib import Path

import click

from withstand.app.report import Loaded, load_runs
from withstand.cli.delivery import deliver, form_of
from withstand.cli.options import Verb, price_option
from withstand.cli.output import rendered, say
from withstand.cli.screen import stage_block
from withstand.errors import UsageError
from withstand.report.classic import Style
from withstand.report.csv import csv_text
from withstand.report.html import render_html
from withstand.report.imported import imported_text
from withstand.report.json import summary_json
from withstand.report.limit import print_limit
from withstand.report.markdown import markdown
from withstand.report.terminal import print_report

_FORMATS: Mapping[str, Callable[[Loaded], str]] = {
    "json": lambda loaded: summary_json(loaded.summary).decode(),
    "csv": lambda loaded: csv_text(loaded.summary),
    "html": lambda loaded: render_html(loaded.summary, loaded.series, loaded.about),
}
_SUFFIXES = {".json": "json", ".md": "markdown", ".csv": "csv", ".html": "html"}


@click.command("report", cls=Verb)
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", *_FORMATS]),
    help="By default what FILE ends in, else text.",
)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Write there instead of stdout.")
@click.option(
    "--style",
    type=click.Choice(["vllm", "sglang"]),
    default="vllm",
    help="Whose block the text shows; vllm's by default.",
)
@price_option("What an hour costs: adds the price of a million tokens. By default what `run` was told.")
@click.option("--tokens", is_flag=True, help="Show the token ledger also where all counts agree.")
def verb(
    paths: tuple[Path, ...],
    form: str | None,
    output: Path | None,
    style: Style,
    price_per_hour: float | None,
    *,
    tokens: bool,
) -> None:
    """Show what runs came to, also of a run that was cut.

    PATH is a run folder, or a result file or folder of another tool. Of several, the stages are shown side by side.
    """
    form = form or form_of(output, _SUFFIXES)
    if tokens and form in _FORMATS:
        raise UsageError(f"--tokens is for text and Markdown; {form} always has the token ledger.")
    loaded = load_runs(paths, price_per_hour, charts=form == "html")
    for notice in loaded.notices:
        say(notice)
    if loaded.summary.partial:
        say(loaded.summary.partial)
    if loaded.damaged_lines:
        say(f"Lines of the records that are cut or damaged, and left out: {loaded.damaged_lines}.")
    deliver(_text(loaded, style, tokens=tokens) if form == "text" else _exported(loaded, form, tokens=tokens), output)


def _exported(loaded: Loaded, form: str, *, tokens: bool) -> str:
    return markdown(loaded.summary, ledger=tokens) if form == "markdown" else _FORMATS[form](loaded)


def _text(loaded: Loaded, style: Style, *, tokens: bool) -> str:
    if loaded.imported:
        summary, title = loaded.summary, loaded.about.title
        shown = rendered(lambda console: print_report(summary, console, title=title)) if summary.stages else ""
        return f"{shown}\n{imported_text(loaded.imported)}"
    backend = loaded.summary.backend
    blocks = [f"{stage_block(stage, style, backend=backend)}\n" for stage in loaded.summary.stages]
    shown = rendered(lambda console: print_report(loaded.summary, console, ledger=tokens))
    limit = loaded.limit
    return "\n".join([*blocks, shown, *([rendered(lambda console: print_limit(limit, console))] if limit else [])])
