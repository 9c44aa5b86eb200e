"""The data that the page's charts draw, as JSON that may stand in a ``<script>``: short, and within a budget.

Where a run is so large that its points would not fit, all stages are thinned alike, keeping extremes and ends.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec

from withstand.metrics.scatter import Scatter
from withstand.metrics.series import Bins, Ecdf, StageSeries
from withstand.metrics.server import Course
from withstand.metrics.summary import Distribution, Interval, StageSummary, Summary
from withstand.report.json import finite

METRICS = ("ttft", "tpot", "itl", "e2el")

_POINTS = 1500
_QUANTILES = 200
_BINS = 60
_COURSE = 240
_FEWEST = 8
_BIN_S_MIN = 1.0

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def charts_json(
    summary: Summary, series: Sequence[StageSeries], bytes_max: int, limit: dict[str, Any] | None = None
) -> str:
    """``series`` holds the charts of the summary's stages, in their order; ``limit`` is drawn as it is."""
    pairs = list(zip(summary.stages, series, strict=True))
    for divisor in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64):
        document = {"limit": limit, "stages": [_stage(stage, drawn, divisor) for stage, drawn in pairs]}
        encoded = msgspec.json.encode(finite(document))
        if len(encoded) <= bytes_max:
            break
    return escaped_json(encoded)


def escaped_json(encoded: bytes) -> str:
    """JSON that cannot end the element in which it stands."""
    return encoded.decode().translate(_ESCAPES)


def _stage(stage: StageSummary, series: StageSeries, divisor: int) -> dict[str, Any]:
    return {
        "name": stage.name,
        "phase": stage.phase or "",
        "asked": stage.load.request_rate,
        "cap": stage.load.max_concurrency,
        "sent": short(stage.achieved_rate),
        "done": short(stage.request_throughput),
        "output": short(stage.output_throughput),
        "attempted": stage.attempted,
        "statuses": stage.statuses or {"ok": stage.completed, "not completed": stage.attempted - stage.completed},
        "metrics": {name: _points_of(getattr(stage, name)) for name in METRICS},
        "ecdf": {n: _quantiles(e, _QUANTILES // divisor) for n, e in series.ecdf.items() if n in METRICS},
        "counts": {n: e.count for n, e in series.ecdf.items() if n in METRICS},
        "scatter": {n: _scatter(s, _POINTS // divisor) for n, s in series.scatter.items() if n in METRICS},
        "bins": _bins(series.bins, max(_FEWEST, _BINS // divisor)) if series.bins else None,
        "server": {name: _course(course, _COURSE // divisor) for name, course in series.server.items()},
    }


def _points_of(distribution: Distribution) -> dict[str, Any]:
    return {key: _with_interval(distribution, key) for key in ("p50", "p99")}


def _with_interval(distribution: Distribution, key: str) -> list[float | int | None]:
    """Value, low end, high end."""
    interval = distribution.intervals.get(key, Interval(None, None))
    return [short(value) for value in (distribution.percentiles.get(key), interval.low, interval.high)]


def _quantiles(ecdf: Ecdf, most: int) -> list[float | int | None]:
    """Values at even shares from 0 to 1; fewer are read off the line between their neighbours."""
    values = ecdf.value_ms
    most = max(_FEWEST, most)
    if len(values) > most:
        values = [_between(values, i * (len(values) - 1) / (most - 1)) for i in range(most)]
    return [short(value) for value in values]


def _between(values: list[float], place: float) -> float:
    low = min(int(place), len(values) - 2)
    return values[low] + (place - low) * (values[low + 1] - values[low])


def _scatter(scatter: Scatter, most: int) -> list[list[float | int | None]]:
    points = list(zip(scatter.at_s, scatter.value_ms, strict=True))
    if len(points) > most:
        stretches = max(_FEWEST, most) // 2
        edges = [len(points) * i // stretches for i in range(stretches + 1)]
        points = [point for low, high in pairwise(edges) for point in _extremes(points[low:high])]
    return [[short(round(at_s, 2)) for at_s, _ in points], [short(value) for _, value in points]]


def _course(course: Course, most: int) -> list[list[float | int | None]]:
    every = -(-len(course.at_s) // max(_FEWEST, most))
    return [[short(round(at_s, 2)) for at_s in course.at_s[::every]], [short(v) for v in course.value[::every]]]


def _extremes(stretch: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return sorted({min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])})


def _bins(bins: Bins, most: int) -> dict[str, Any]:
    """Rates a second, in bins of a second or more. What is left at the end would be taken for a lower rate."""
    together = max(-(-len(bins.start_s) // most), round(_BIN_S_MIN / bins.width_s), 1)
    together = min(together, len(bins.start_s))
    width_s = together * bins.width_s
    return {
        "at": [short(part[0]) for part in _parts(bins.start_s, together)],
        "scheduled": _rates(bins.scheduled, together, width_s),
        "completed": _rates(bins.completed, together, width_s),
        "tokens": _rates(bins.output_tokens, together, width_s),
        "flight": [short(sum(part) / together) for part in _parts(bins.concurrency, together)],
    }


def _rates(counts: Sequence[int | None], together: int, width_s: float) -> list[float | int | None]:
    return [_rate([n for n in part if n is not None], width_s) for part in _parts(counts, together)]


def _rate(counts: Sequence[int], width_s: float) -> float | int | None:
    return short(sum(counts) / width_s) if counts else None


def _parts(values: Sequence[Any], together: int) -> list[Sequence[Any]]:
    return [values[i : i + together] for i in range(0, len(values) - together + 1, together)]


def short(value: float | None, digits: int = 4) -> float | int | None:
    """Four digits are more than a pixel shows."""
    if value is None:
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() else short
