"""A comparison for pull requests, as GitHub reads it: the headline, the doubts, the table; the rest folded away."""

from collections.abc import Iterator, Sequence

from withstand.compare.shape import Comparison, Decision, Group, Row, Side, Unmatched
from withstand.report import comparison_words as words
from withstand.report.comparison_words import Listed, Notes
from withstand.report.markdown import doubt_line, escaped
from withstand.report.numbers import UNKNOWN, counted, signed_percent

_DOUBTS_MAX = 3


def comparison_markdown(comparison: Comparison, decisions: Sequence[Decision], now: str) -> str:
    """The whole text, with a newline at its end."""
    notes = Notes()
    metrics = words.listed(comparison)
    opened = words.opened(metrics)
    folded = [one for one in metrics if one not in opened]
    parts = [
        f"### {escaped(words.title(comparison))}",
        f"**{escaped(comparison.headline)}**",
        f"> [!WARNING]\n> {escaped(words.FORCED)}" if comparison.forced else "",
        *_doubts(comparison),
        _decided(decisions),
        *_tables(comparison, opened, notes),
        _folded(counted(len(folded), "more metric"), _tables(comparison, folded, notes)),
        *_noted(notes),
        _folded("Conditions, and what was left out", _conditions(comparison)),
        _folded("Method", [escaped(comparison.method)]),
        f"<sub>withstand · {escaped(now)}</sub>",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _folded(title: str, parts: Sequence[str]) -> str:
    if not parts:
        return ""
    return "\n\n".join(["<details>", f"<summary>{escaped(title)}</summary>", *parts, "</details>"]).replace(
        "<details>\n\n<summary>", "<details><summary>"
    )


def _doubts(comparison: Comparison) -> list[str]:
    said = [doubt_line(doubt) for doubt in words.doubts(comparison)]
    said += [f"- {escaped(text)} ({escaped(', '.join(at))})" for text, at in words.remarks(comparison).items()]
    first, rest = "\n".join(said[:_DOUBTS_MAX]), said[_DOUBTS_MAX:]
    return [first, _folded(counted(len(rest), "more doubt"), ["\n".join(rest)] if rest else [])]


def _decided(decisions: Sequence[Decision]) -> str:
    if not decisions:
        return ""
    lines = ["| best for | | evidence | doubt |", "| --- | --- | --- | --- |"]
    for one in decisions:
        winner = escaped(one.winner) if one.winner else "nothing can be concluded"
        lines.append(f"| {escaped(one.wins_for)} | {winner} | {escaped(one.evidence)} | {escaped(one.doubt or '')} |")
    return "\n".join(lines)


def _tables(comparison: Comparison, metrics: Sequence[Listed], notes: Notes) -> list[str]:
    return ["\n".join(_table(comparison, metric, notes)) for metric in metrics]


def _table(comparison: Comparison, metric: Listed, notes: Notes) -> Iterator[str]:
    baseline, *others = [escaped(side.label) for side in comparison.sides]
    sides = [f"{baseline} (baseline)", *others]
    headings = [
        f"{escaped(metric.first.title)}, {escaped(words.unit(metric.first))}",
        *sides,
        "Fastest",
        "Faster by (%)",
    ]
    headings += [f"{other} against {baseline}" for other in others]
    yield f"| {' | '.join(headings)} |"
    yield "| --- |" + " ---: |" * len(sides) + " --- | ---: |" + " --- |" * len(others)
    for group, row in metric.pairs:
        yield f"| {' | '.join(_row(comparison, group, row, metric.decimals, notes))} |"


def _row(comparison: Comparison, group: Group, row: Row, decimals: int, notes: Notes) -> Iterator[str]:
    yield escaped(group.label) + _marks(notes, words.reservations(row))
    for side, cell in enumerate(row.cells):
        yield words.value(row, cell.value, decimals) + _marks(notes, words.cell_doubts(row, side))
    yield escaped(words.fastest(comparison, row))
    yield words.faster_by(row)
    yield from (_difference(row, side) for side in range(1, len(row.cells)))


def _difference(row: Row, side: int) -> str:
    difference = row.differences[side]
    if difference is None:
        return UNKNOWN
    ends = words.difference_interval(difference)
    return f"**{words.verdict(row, difference)}** {signed_percent(difference.percent)}{f' ({ends})' if ends else ''}"


def _marks(notes: Notes, sentences: Sequence[str]) -> str:
    numbers = notes.refer(sentences)
    return f" <sup>{', '.join(map(str, numbers))}</sup>" if numbers else ""


def _noted(notes: Notes) -> list[str]:
    listed = notes.listed()
    return ["\n".join(f"{number}. {escaped(sentence)}" for number, sentence in listed)] if listed else []


def _conditions(comparison: Comparison) -> list[str]:
    shared = words.shared_conditions(comparison.groups)
    lines = [f"- {escaped(name)}: {escaped(text)}" for name, text in shared.items()]
    lines += [_side(place, side) for place, side in enumerate(comparison.sides)]
    lines += [_lost(comparison.sides[lost.side].label, lost) for lost in comparison.unmatched]
    return ["\n".join(lines)]


def _side(place: int, side: Side) -> str:
    facts = [side.model or "model unknown", side.tool, "facts" if side.facts else "aggregates only", *side.sources]
    return f"- **{escaped(side.label)}**{'' if place else ' (baseline)'}: {escaped('; '.join(facts))}"


def _lost(label: str, lost: Unmatched) -> str:
    return f"- Not compared: {escaped(f'{label}, {lost.what}: {lost.why}')}"
