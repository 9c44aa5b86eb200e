"""One row for each metric, set of conditions and side: full numbers, units in a column, unknown as an empty cell."""

from withstand.compare.shape import Comparison, Group, Row
from withstand.metrics.summary import Interval
from withstand.report.csv import Cell, spreadsheet


def comparison_csv(comparison: Comparison) -> str:
    """The whole file."""
    sides = range(len(comparison.sides))
    return spreadsheet(
        [
            _where(comparison, group, row) | _what(row, side, comparison) | _concluded(row, side)
            for group in comparison.groups
            for row in group.rows
            for side in sides
        ]
    )


def _where(comparison: Comparison, group: Group, row: Row) -> dict[str, Cell]:
    return {
        "conditions": group.label,
        "request_rate_rps": group.rate,
        "max_concurrency": group.concurrency,
        "shared": "; ".join(f"{name}={text}" for name, text in group.conditions.items()),
        "forced": "yes" if comparison.forced else "no",
        "metric": row.metric,
        "title": row.title,
        "unit": row.unit,
        "better": {True: "lower", False: "higher", None: None}[row.lower_is_better],
    }


def _what(row: Row, side: int, comparison: Comparison) -> dict[str, Cell]:
    cell = row.cells[side]
    low, high = _ends(cell.interval)
    return {
        "side": comparison.sides[side].label,
        "baseline": "yes" if side == 0 else "no",
        "value": cell.value,
        "low": low,
        "high": high,
        "n": cell.n,
        "runs": cell.runs,
        "doubts": " ".join(doubt.kind.value for doubt in cell.doubts),
    }


def _concluded(row: Row, side: int) -> dict[str, Cell]:
    difference = row.differences[side]
    low, high = _ends(difference.interval if difference else None)
    return {
        "fastest": "yes" if row.fastest == side else "no",
        "faster_by_percent": row.faster_by_percent if row.fastest == side else None,
        "difference_percent": difference.percent if difference else None,
        "difference_low_percent": low,
        "difference_high_percent": high,
        "method": difference.method.value if difference else None,
        "chance": difference.chance if difference else None,
        "verdict": difference.verdict.value if difference else None,
        "enough": difference.enough if difference else None,
        "remark": row.remark,
    }


def _ends(interval: Interval | None) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (interval.low, interval.high)
