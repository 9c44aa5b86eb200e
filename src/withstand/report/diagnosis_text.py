"""A diagnosis on a terminal: a line for each question, its cure below it, a chapter at a time."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich.text import Text

from withstand.doctor.finding import Diagnosis, Finding, Verdict
from withstand.report.numbers import counted
from withstand.report.terminal import shown

if TYPE_CHECKING:
    from rich.console import Console

MARKS: Final = {Verdict.OK: "✓", Verdict.DOUBT: "?", Verdict.WRONG: "✗", Verdict.NOT_TRIED: "-"}
CHAPTERS: Final = {
    "stream": "The stream",
    "usage": "Counts",
    "fields": "The body's fields",
    "headers": "On the way to the engine",
    "errors": "Errors",
    "leaving": "A client leaves",
    "hop": "What the hop costs",
    "manners": "Manners",
    "nginx": "nginx's configuration",
}
_STYLES: Final = {Verdict.OK: "green", Verdict.DOUBT: "yellow", Verdict.WRONG: "bold red", Verdict.NOT_TRIED: "dim"}
_TITLE = 26
_WIDTH_MAX = 110


def headline(diagnosis: Diagnosis) -> str:
    """``24 ok, 2 in doubt, 1 wrong, 3 not tried``."""
    return tally(diagnosis.findings) + (", stopped before its end" if diagnosis.stopped else "")


def tally(findings: Iterable[Finding]) -> str:
    """How many are so."""
    count = Counter(finding.verdict for finding in findings)
    ill = f"{count[Verdict.OK]} ok, {count[Verdict.DOUBT]} in doubt, {count[Verdict.WRONG]} wrong"
    return f"{ill}, {count[Verdict.NOT_TRIED]} not tried"


def circumstances(diagnosis: Diagnosis) -> str:
    """What was asked, and what stood beside it."""
    parts = [diagnosis.url, f"model {diagnosis.model}"]
    if diagnosis.echo:
        parts.append(f"echo engine {diagnosis.echo}")
    elif diagnosis.direct:
        parts.append(f"engine {diagnosis.direct}")
    return " · ".join(parts)


def print_diagnosis(diagnosis: Diagnosis, console: "Console") -> None:
    """As wide as the console, within reason."""
    width = min(console.width, _WIDTH_MAX)
    for part in textwrap.wrap(shown(circumstances(diagnosis)), width):
        console.print(Text(part, "bold"), soft_wrap=True)
    print_findings(diagnosis.findings, console)
    console.print()
    asked = f"{counted(diagnosis.requests, 'request')} in {diagnosis.took_s:.0f} s"
    console.print(Text(f"{headline(diagnosis)}; {asked}"), soft_wrap=True)


def print_lint(findings: Sequence[Finding], console: "Console") -> None:
    """Of a file."""
    print_findings(findings, console)
    console.print()
    console.print(Text(tally(findings)), soft_wrap=True)


def print_findings(found: Iterable[Finding], console: "Console") -> None:
    """A chapter at a time."""
    width = min(console.width, _WIDTH_MAX)
    for chapter, findings in groupby(found, key=lambda finding: finding.chapter):
        console.print()
        console.print(Text(CHAPTERS[chapter], "bold"))
        several = list(findings)
        for finding, after in zip(several, [*several[1:], None], strict=True):
            told_later = after is not None and after.cure == finding.cure
            for line in _lines(finding, width, cure="" if told_later else finding.cure):
                console.print(line, soft_wrap=True)


def _lines(finding: Finding, width: int, cure: str) -> Iterator[Text]:
    """A cure that the next finding has too is told there."""
    style = _STYLES[finding.verdict]
    first, *more = textwrap.wrap(shown(finding.said), width - _TITLE - 4) or [""]
    yield Text.assemble((f" {MARKS[finding.verdict]} ", style), f"{finding.title:<{_TITLE}} ", first)
    yield from (Text(" " * (_TITLE + 4) + line) for line in more)
    if cure:
        indent = " " * (_TITLE + 4)
        for line in textwrap.wrap(f"→ {cure}", width, initial_indent=indent, subsequent_indent=f"{indent}  "):
            yield Text(line, "cyan")
