"""An audit for pull requests and wikis."""

from collections.abc import Iterator, Sequence

from withstand.audit.shape import Audit, FileAudit
from withstand.audit.words import CLAIM_TITLES
from withstand.report.audit_parts import (
    LEGEND,
    MARKS,
    TITLES,
    UNITS,
    cell,
    claims_told,
    doubts_between,
    doubts_of,
    in_short,
    statistic,
)
from withstand.report.markdown import doubt_line, escaped


def audit_markdown(audit: Audit) -> str:
    """The whole text, with a newline at its end."""
    parts = [f"**{told}**"] if (told := in_short(audit)) else []
    parts += [part for file in audit.files for part in _file(file)]
    between = doubts_between(audit)
    if between:
        parts += [f"### Between the {len(audit.files)} files", "\n".join(map(doubt_line, between))]
    parts += _left_out(audit.left_out)
    return "\n\n".join(parts) + "\n"


def _file(file: FileAudit) -> Iterator[str]:
    yield f"### {escaped(file.path)}: {TITLES[file.standing].lower()}"
    yield f"**{escaped(file.unreadable or file.headline)}**"
    if file.form:
        yield escaped(file.form)
    doubts = doubts_of(file)
    if doubts:
        yield "\n".join(map(doubt_line, doubts))
    if file.cases:
        yield "\n".join(_table(file))
        yield f"<sub>{LEGEND}</sub>"
    yield from _left_out(file.left_out)


def _left_out(told: Sequence[str]) -> Iterator[str]:
    if told:
        yield "\n".join(f"- Left out: {escaped(left)}" for left in told)


def _table(file: FileAudit) -> Iterator[str]:
    claims = claims_told(file)
    heads = [" ".join(f"{CLAIM_TITLES[c]} {statistic(file, c)} {UNITS[c]}".split()) for c in claims]
    yield "| | what can be quoted | " + " | ".join(heads) + " |"
    yield "| --- | --- |" + " ---: |" * len(claims)
    for case in file.cases:
        cells = [f"{found[0]} {MARKS[found[1]]}" if (found := cell(case.findings, c)) else "" for c in claims]
        yield f"| {MARKS[case.standing]} | {escaped(case.name)} | {' | '.join(cells)} |"
