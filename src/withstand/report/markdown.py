"""A table of stages for pull requests and wikis, and the doubts below it."""

import re
from collections.abc import Iterator, Sequence

from withstand.control.limit import Limit
from withstand.metrics.summary import Summary
from withstand.report import costs, economy, energy, layers, tokens
from withstand.report import limit as limits
from withstand.report.agent import agent_lines
from withstand.report.client import run_line
from withstand.report.cold import cold_lines
from withstand.report.columns import StageColumn, captions, columns_of_stages
from withstand.report.ending import ending_lines
from withstand.report.server import server_lines
from withstand.report.standing import Heard, heard, standing

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~&])")


def markdown(summary: Summary, limit: Limit | None = None, *, ledger: bool = False) -> str:
    """The whole text, with a newline at its end; with the token ledger if it is asked for or has something to say."""
    meaning, *drawn = captions(summary)
    parts = [
        *(_limit(limit) if limit else ()),
        f"**{escaped(standing(summary).sentence)}**",
        _subject(summary),
        *(
            ("\n".join(_table(summary)), f"<sub>{' · '.join([meaning, *map(escaped, drawn)])}</sub>")
            if summary.stages
            else ()
        ),
        _small("tokens by", tokens.columns_of(summary), summary)
        if ledger or any(map(tokens.tells, summary.stages))
        else "",
        *(f"<sub>{escaped(told)}</sub>" for told in _beside(summary)),
        _small("time by layer", layers.columns_of(summary), summary),
        *map(escaped, layers.sentences(summary)),
        _small("tokens cost", costs.columns_of(summary), summary),
        *map(escaped, (*costs.sentences(summary), *economy.sentences(summary))),
        _small("energy", energy.columns_of(summary), summary),
        *map(escaped, energy.sentences(summary)),
    ]
    doubts = heard(summary)
    if doubts:
        parts += ["### Doubts", "\n".join(doubt_line(doubt) for doubt in doubts)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _beside(summary: Summary) -> Iterator[str]:
    """Lines below the table."""
    if line := run_line(summary):
        yield line
    yield from ending_lines(summary)
    yield from agent_lines(summary)
    yield from cold_lines(summary)
    yield from server_lines(summary)


def _limit(limit: Limit) -> Iterator[str]:
    """The sentence, what was promised, and the table of what was tried."""
    yield f"**{escaped(limits.sentence(limit))}**"
    yield f"<sub>promised: {escaped(limits.promised(limit))}</sub>"
    if limit.probes:
        head = [f"| {' | '.join(limits.HEADINGS)} |", "|" + " ---: |" * (len(limits.HEADINGS) - 1) + " --- |"]
        yield "\n".join([*head, *(f"| {' | '.join(map(escaped, row))} |" for row in limits.rows(limit))])


def _subject(summary: Summary) -> str:
    return " · ".join(
        escaped(text) for text in (summary.model_id, summary.backend, summary.target, summary.dataset) if text
    )


def _table(summary: Summary) -> Iterator[str]:
    columns = [column for part in columns_of_stages(summary) for column in part]
    yield "| phase | stage | " + " | ".join(column.heading for column in columns) + " |"
    yield "| --- | --- |" + " ---: |" * len(columns)
    for stage in summary.stages:
        cells = [escaped(stage.phase or ""), escaped(stage.name), *(column.cell(stage) for column in columns)]
        yield f"| {' | '.join(cells)} |"


def _small(title: str, columns: Sequence[StageColumn], summary: Summary) -> str:
    """A table beside that of the stages; nothing where there is no column."""
    if not columns:
        return ""
    lines = [f"| {title} | {' | '.join(column.heading for column in columns)} |", "| --- |" + " ---: |" * len(columns)]
    for stage in summary.stages:
        cells = [escaped(text) for text in (stage.name, *(_in_a_line(column.cell(stage)) for column in columns))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _in_a_line(text: str) -> str:
    """``53.62 (7 %)``."""
    value, *beside = text.split("\n")
    return " ".join([value, *(f"({line})" for line in beside)])


def doubt_line(doubt: Heard) -> str:
    """One item of a list."""
    return f"- {doubt_text(doubt)}"


def doubt_text(doubt: Heard) -> str:
    """The sentence, where it holds, and the remedy."""
    mark = "**Blocking.** " if doubt.blocking else ""
    where = f" ({escaped(doubt.where)})" if doubt.where else ""
    return f"{mark}{escaped(doubt.sentence)}{where} *{escaped(doubt.brief_remedy)}*"


def escaped(text: str) -> str:
    """On one line, nothing in it is markup, and no control character is left."""
    return _SPECIAL.sub(r"\\\1", "".join(c for c in " ".join(text.split()) if c.isprintable()))
