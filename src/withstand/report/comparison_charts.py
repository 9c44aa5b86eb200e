"""What the charts of a comparison draw, as JSON that may stand in a ``<script>``, within a budget.

A sentence that many marks share is there once; marks refer to it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from withstand.compare.shape import Comparison, Difference, Group, Row
from withstand.report import comparison_words as words
from withstand.report.charts import escaped_json, short
from withstand.report.comparison_courses import courses
from withstand.report.comparison_words import Listed, Notes
from withstand.report.json import finite
from withstand.report.numbers import signed_percent

_DIGITS = 7
"""Of what is also shown in words."""


def comparison_charts(comparison: Comparison, metrics: Sequence[Listed], bytes_max: int) -> str:
    """The charts of as many metrics as fit, from the first on; the others have their tables."""
    for shown in range(len(metrics), 0, -1):
        encoded = msgspec.json.encode(finite(_document(comparison, metrics[:shown])))
        if len(encoded) <= bytes_max:
            return escaped_json(encoded)
    return escaped_json(msgspec.json.encode(_document(comparison, ())))


def _document(comparison: Comparison, metrics: Sequence[Listed]) -> dict[str, Any]:
    notes = Notes()
    drawn = {metric.metric: _metric(comparison, metric, notes) for metric in metrics}
    return {
        "sides": [side.label for side in comparison.sides],
        "groups": [group.label for group in comparison.groups],
        "courses": [{"kind": course.kind, "places": course.places} for course in courses(comparison.groups)],
        "metrics": drawn,
        "sentences": [sentence for _, sentence in notes.listed()],
    }


def _metric(comparison: Comparison, metric: Listed, notes: Notes) -> dict[str, Any]:
    rows = {id(group): row for group, row in metric.pairs}
    first = metric.first
    return {
        "title": first.title,
        "unit": words.unit(first),
        "share": first.unit == "share",
        "decimals": metric.decimals,
        "rows": [_row(group, rows.get(id(group)), notes) for group in comparison.groups],
    }


def _row(group: Group, row: Row | None, notes: Notes) -> list[list[Any]] | None:
    """A list a side: value, low, high, n, verdict and difference in words, sentences, whether one forbids a verdict."""
    return None if row is None else [_cell(group, row, side, notes) for side in range(len(row.cells))]


def _cell(group: Group, row: Row, side: int, notes: Notes) -> list[Any]:
    cell, difference = row.cells[side], row.differences[side]
    low, high = (cell.interval.low, cell.interval.high) if cell.interval else (None, None)
    said = [*(doubt.sentence for doubt in (*cell.doubts, *row.because)), *row.lacks, *row.cautions]
    verdict = _verdict(row, difference) if difference else None
    completed = group.volumes[side].completed if group.volumes else None
    n = completed if cell.n is None else cell.n
    told = _references(notes, dict.fromkeys(said))
    value, low, high = (short(number, _DIGITS) for number in (cell.value, low, high))
    return [value, low, high, n, verdict, told, words.is_forbidden(row, side)]


def _verdict(row: Row, difference: Difference) -> str:
    return f"{words.verdict(row, difference)}, {signed_percent(difference.percent)}"


def _references(notes: Notes, sentences: Iterable[str]) -> list[int]:
    return [number - 1 for number in notes.refer(sentences)]
