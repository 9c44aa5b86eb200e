"""A comparison for pull requests, as GitHub reads it: the headline, the doubts, the table; the rest folded away."""

from collections.abc import Iterator, Sequence

from withstand.compare.shape import Comparison, Decision, Gate, Group, Objection, Row, Side, Unmatched
from withstand.report import comparison_words as words
from withstand.report.comparison_words import Listed, Marker, Notes, Numbered, letter
from withstand.report.markdown import doubt_text, escaped
from withstand.report.numbers import UNKNOWN, counted, signed_percent

_DOUBTS_MAX = 3


def comparison_markdown(comparison: Comparison, decisions: Sequence[Decision], now: str) -> str:
    """The whole text, with a newline at its end."""
    marker = Marker(Numbered(comparison), Notes(), words.common_lack(comparison))
    metrics = words.listed(comparison)
    opened = words.opened(metrics)
    folded = [one for one in metrics if one not in opened]
    parts = [
        f"### {escaped(words.title(comparison))}",
        f"**{escaped(comparison.headline)}**",
        _alert(comparison.gate),
        f"> [!WARNING]\n> {escaped(words.FORCED)}" if comparison.forced else "",
        *_doubts(comparison, marker),
        _decided(decisions, marker),
        *_tables(comparison, opened, marker),
        _folded(counted(len(folded), "more metric"), _tables(comparison, folded, marker)),
        *_noted(comparison, marker),
        _folded("Conditions, and what was left out", _conditions(comparison)),
        _folded("Method", [escaped(comparison.method)]),
        f"<sub>withstand · {escaped(now)}</sub>",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _alert(gate: Gate | None) -> str:
    """Whether a side may pass, as GitHub sets it apart."""
    return f"> [!{'CAUTION' if gate.failed else 'NOTE'}]\n> {escaped(gate.sentence)}" if gate else ""


def _folded(title: str, parts: Sequence[str]) -> str:
    if not parts:
        return ""
    return "\n\n".join(["<details>", f"<summary>{escaped(title)}</summary>", *parts, "</details>"]).replace(
        "<details>\n\n<summary>", "<details><summary>"
    )


def _doubts(comparison: Comparison, marker: Marker) -> list[str]:
    said = [f"{place}. {doubt_text(doubt)}" for place, doubt in enumerate(marker.numbered.heard, start=1)]
    said += [f"- {escaped(text)} ({escaped(', '.join(at))})" for text, at in words.remarks(comparison).items()]
    first, rest = "\n".join(said[:_DOUBTS_MAX]), said[_DOUBTS_MAX:]
    return [first, _folded(counted(len(rest), "more doubt"), ["\n".join(rest)] if rest else [])]


def _decided(decisions: Sequence[Decision], marker: Marker) -> str:
    if not decisions:
        return ""
    lines = ["| best for | | evidence | doubt |", "| --- | --- | --- | --- |"]
    for one in decisions:
        winner = escaped(one.winner) if one.winner else "nothing can be concluded"
        against = " ".join(_objection(objection, marker) for objection in one.against)
        lines.append(f"| {escaped(one.wins_for)} | {winner} | {escaped(one.evidence)} | {against} |")
    return "\n".join(lines)


def _tables(comparison: Comparison, metrics: Sequence[Listed], marker: Marker) -> list[str]:
    return ["\n".join(_table(comparison, metric, marker)) for metric in metrics]


def _table(comparison: Comparison, metric: Listed, marker: Marker) -> Iterator[str]:
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
        yield f"| {' | '.join(_row(comparison, group, row, metric.decimals, marker))} |"


def _row(comparison: Comparison, group: Group, row: Row, decimals: int, marker: Marker) -> Iterator[str]:
    yield escaped(group.label)
    for cell in row.cells:
        yield words.value(row, cell.value, decimals) + _small(marker.of(cell.doubts))
    yield escaped(words.fastest(comparison, row))
    yield words.faster_by(row)
    yield from (_difference(row, side, marker) for side in range(1, len(row.cells)))


def _difference(row: Row, side: int, marker: Marker) -> str:
    difference = row.differences[side]
    if difference is None:
        return UNKNOWN
    ends = words.difference_interval(difference)
    size = f"{signed_percent(difference.percent)}{f' ({ends})' if ends else ''}"
    least = words.shows_from(difference)
    told = f"**{words.verdict(row, difference)}**{f' ({escaped(least)})' if least else ''}"
    return f"{told}{_small(marker.of_verdict(row))} {size}"


def _small(marks: str) -> str:
    return f" <sup>{marks}</sup>" if marks else ""


def _objection(objection: Objection, marker: Marker) -> str:
    """``Rate not achieved at 30 req/s <sup>3</sup>``, and a full stop."""
    return f"{escaped(objection.remark)}{_small(marker.of_objection(objection))}."


def _noted(comparison: Comparison, marker: Marker) -> list[str]:
    longer, cure = words.longer(comparison), words.common_cure(comparison)
    said = [marker.common or "", words.to_conclude_more(cure) if cure else ""]
    said += [f"To see more, measure longer: {'; '.join(longer)}."] if longer else []
    said += ["(≥ 5 %): no difference is shown; one of 5 % would have been."] if words.some_shown(comparison) else []
    notes = "\n".join(f"- {letter(place)}: {escaped(sentence)}" for place, sentence in marker.notes.listed())
    return [escaped(" ".join(filter(None, said))), notes]


def _conditions(comparison: Comparison) -> list[str]:
    shared = words.shared_conditions(comparison.groups)
    lines = [f"- {escaped(name)}: {escaped(text)}" for name, text in shared.items()]
    lines += [_side(place, side) for place, side in enumerate(comparison.sides)]
    lines += [_lost(comparison.sides[lost.side].label, lost) for lost in comparison.unmatched]
    return ["\n".join(lines)]


def _side(place: int, side: Side) -> str:
    facts = [side.model or "model unknown", side.tool, "facts" if side.facts else "aggregates only", *side.sources]
    facts += [words.nothing_in(side)] if side.empty else []
    return f"- **{escaped(side.label)}**{'' if place else ' (baseline)'}: {escaped('; '.join(facts))}"


def _lost(label: str, lost: Unmatched) -> str:
    return f"- Not compared: {escaped(f'{label}, {lost.what}: {lost.why}')}"
