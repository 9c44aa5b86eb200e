"""A comparison for pull requests, as GitHub reads it: the headline, the doubts, the table; the rest folded away."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from withstand.compare.shape import Comparison, Decision, Gate, Group, Objection, Row, Side, Unmatched
from withstand.metrics.doubts import Doubt
from withstand.report import comparison_words as words
from withstand.report.comparison_words import Listed, Notes, Numbered, letter
from withstand.report.markdown import doubt_text, escaped
from withstand.report.numbers import UNKNOWN, counted, signed_percent

_DOUBTS_MAX = 3


def comparison_markdown(comparison: Comparison, decisions: Sequence[Decision], now: str) -> str:
    """The whole text, with a newline at its end."""
    marks = _Marks(Numbered(comparison), Notes(), words.common_lack(comparison), words.common_cure(comparison))
    metrics = words.listed(comparison)
    opened = words.opened(metrics)
    folded = [one for one in metrics if one not in opened]
    parts = [
        f"### {escaped(words.title(comparison))}",
        f"**{escaped(comparison.headline)}**",
        _alert(comparison.gate),
        f"> [!WARNING]\n> {escaped(words.FORCED)}" if comparison.forced else "",
        *_doubts(comparison, marks),
        _decided(decisions, marks),
        *_tables(comparison, opened, marks),
        _folded(counted(len(folded), "more metric"), _tables(comparison, folded, marks)),
        *_noted(comparison, marks),
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


def _doubts(comparison: Comparison, marks: "_Marks") -> list[str]:
    said = [f"{place}. {doubt_text(doubt)}" for place, doubt in enumerate(marks.numbered.heard, start=1)]
    said += [f"- {escaped(text)} ({escaped(', '.join(at))})" for text, at in words.remarks(comparison).items()]
    first, rest = "\n".join(said[:_DOUBTS_MAX]), said[_DOUBTS_MAX:]
    return [first, _folded(counted(len(rest), "more doubt"), ["\n".join(rest)] if rest else [])]


def _decided(decisions: Sequence[Decision], marks: "_Marks") -> str:
    if not decisions:
        return ""
    lines = ["| best for | | evidence | doubt |", "| --- | --- | --- | --- |"]
    for one in decisions:
        winner = escaped(one.winner) if one.winner else "nothing can be concluded"
        against = " ".join(map(marks.of_objection, one.against))
        lines.append(f"| {escaped(one.wins_for)} | {winner} | {escaped(one.evidence)} | {against} |")
    return "\n".join(lines)


def _tables(comparison: Comparison, metrics: Sequence[Listed], marks: "_Marks") -> list[str]:
    return ["\n".join(_table(comparison, metric, marks)) for metric in metrics]


def _table(comparison: Comparison, metric: Listed, marks: "_Marks") -> Iterator[str]:
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
        yield f"| {' | '.join(_row(comparison, group, row, metric.decimals, marks))} |"


def _row(comparison: Comparison, group: Group, row: Row, decimals: int, marks: "_Marks") -> Iterator[str]:
    yield escaped(group.label)
    for cell in row.cells:
        yield words.value(row, cell.value, decimals) + marks.of_doubts(cell.doubts)
    yield escaped(words.fastest(comparison, row))
    yield words.faster_by(row)
    yield from (_difference(row, side, marks) for side in range(1, len(row.cells)))


def _difference(row: Row, side: int, marks: "_Marks") -> str:
    difference = row.differences[side]
    if difference is None:
        return UNKNOWN
    ends = words.difference_interval(difference)
    size = f"{signed_percent(difference.percent)}{f' ({ends})' if ends else ''}"
    least = words.shows_from(difference)
    told = f"**{words.verdict(row, difference)}**{f' ({escaped(least)})' if least else ''}"
    return f"{told}{marks.of_verdict(row)} {size}"


class _Marks(msgspec.Struct, frozen=True):
    """Small numbers are those of doubts, small letters those of notes."""

    numbered: Numbered
    notes: Notes
    lack: str | None
    cure: str | None

    def of_doubts(self, doubts: Iterable[Doubt], said: Iterable[str] = ()) -> str:
        """Nothing where there are none."""
        marks = [*map(str, self.numbered.of(doubts)), *map(letter, self.notes.refer(said))]
        return f" <sup>{', '.join(marks)}</sup>" if marks else ""

    def of_objection(self, objection: Objection) -> str:
        """``Rate not achieved at 30 req/s <sup>3</sup>``, and a full stop."""
        notes = [objection.note] if objection.note and objection.note != self.lack else []
        return f"{escaped(objection.remark)}{self.of_doubts(objection.doubts, notes)}."

    def of_verdict(self, row: Row) -> str:
        """What forbids it."""
        return self.of_doubts(row.because, words.own_lacks(row, self.lack))


def _noted(comparison: Comparison, marks: _Marks) -> list[str]:
    longer = words.longer(comparison)
    said = [marks.lack or "", f"To conclude more: {marks.cure}." if marks.cure else ""]
    said += [f"To see more, measure longer: {longer}."] if longer else []
    said += ["(≥ 5 %): no difference is shown; one of 5 % would have been."] if words.some_shown(comparison) else []
    notes = "\n".join(f"- {letter(place)}: {escaped(sentence)}" for place, sentence in marks.notes.listed())
    return [escaped(" ".join(filter(None, said))), notes]


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
