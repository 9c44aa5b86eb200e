"""GuideLLM's CSV: one row a benchmark, with the same numbers as its JSON.

Since 0.4 there are three rows of headings; before, one long name a column, and what was asked as JSON in cells.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from withstand.interop import facts, values
from withstand.interop.guidellm import run_of
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place
from withstand.interop.tables import csv_dicts

_Key = tuple[str, str, str]
_METRICS = {
    ("Request Latency", "Successful Sec"): "request_latency",
    ("Time to First Token", "Successful ms"): "time_to_first_token_ms",
    ("Time to First Output Token", "Successful ms"): "time_to_first_output_token_ms",
    ("Time per Output Token", "Successful ms"): "time_per_output_token_ms",
    ("Inter Token Latency", "Successful ms"): "inter_token_latency_ms",
    ("Server Throughput", "Successful Requests/Sec"): "requests_per_second",
    ("Token Metrics", "Successful Output Tokens"): "output_token_count",
    ("Token Throughput", "Successful Output Tokens/Sec"): "output_tokens_per_second",
}
_STATS = {"Mean": "mean", "Median": "median", "Std Dev": "std_dev"}
_LISTED = ("min", "p001", "p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "max")
"""What a cell of percentiles holds, without saying so: the median stands apart, and must lie in the gap."""
_QUARTERS = (5, 6)
_STATUSES = ("Successful", "Incomplete", "Errored", "Total")
_OLD_LIST = "[min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"
_HEADINGS = 3


def recognises(header: Sequence[str]) -> bool:
    """The first row of headings."""
    return {"Run Info", "Request Counts", "Time to First Token"} <= set(header)


def read(rows: Sequence[Sequence[str]], place: Place) -> list[ImportedRun]:
    """One run a row."""
    keys: list[_Key] = list(zip(*rows[:_HEADINGS], strict=False))
    return [_run(dict(zip(keys, row, strict=False)), place, i) for i, row in enumerate(rows[_HEADINGS:])]


def recognises_old(header: Sequence[str]) -> bool:
    """The only row of headings, until 0.3."""
    return {"Run Id", "Successful Requests", "Successful Time to first token ms mean"} <= set(header)


def read_old(rows: Sequence[Sequence[str]], place: Place) -> list[ImportedRun]:
    """One run a row."""
    return [_old_run(row, place.at(f"row {i}")) for i, row in enumerate(csv_dicts(rows), start=1)]


def _old_run(cells: Mapping[str, str], place: Place) -> ImportedRun:
    item = {
        "args": _json(cells.get("Args")),
        "worker": _json(cells.get("Worker")),
        "request_loader": _json(cells.get("Request Loader")),
        "request_totals": {s.lower(): cells.get(f"{s} Requests") for s in _STATUSES},
        "duration": cells.get("Duration"),
        "metrics": dict(_old_metrics(cells)),
    }
    return run_of(item, place.builder("GuideLLM CSV", "GuideLLM"), {})


def _old_metrics(cells: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for name in _METRICS.values():
        said = f"Successful {name.replace('_', ' ').capitalize()}"
        told = {key: cells.get(f"{said} {label.lower()}") for label, key in _STATS.items()}
        yield name, {"successful": _distribution(told, cells.get(f"{said} {_OLD_LIST}"))}
    yield "request_concurrency", {"total": {"mean": cells.get("Total Request concurrency mean")}}


def _run(cells: Mapping[_Key, str], place: Place, index: int) -> ImportedRun:
    about = values.mapping(_json(cells.get(("Runtime Info", "Metadata", ""))))
    backend = _json(cells.get(("Run Info", "Backend", "")))
    kind, _, load = cells.get(("Benchmark", "Strategy", ""), "").partition("@")
    totals = {s.lower(): cells.get(("Request Counts", s, "")) for s in _STATUSES}
    item = {
        "config": {"strategy": {"type_": kind, "streams": load, "rate": load}, "backend": backend},
        "request_totals": totals,
        "duration": cells.get(("Timings", "Duration", "Sec")),
        "metrics": dict(_metrics(cells)),
    }
    version = values.text(about.get("guidellm_version"))
    return run_of(item, place.at(f"row {index + 1}").builder("GuideLLM CSV", "GuideLLM", version), {})


def _metrics(cells: Mapping[_Key, str]) -> Iterator[tuple[str, Any]]:
    for (group, unit), name in _METRICS.items():
        told = {key: cells.get((group, unit, label)) for label, key in _STATS.items()}
        yield name, {"successful": _distribution(told, cells.get((group, unit, "Percentiles")))}
    concurrency = cells.get(("Server Throughput", "Successful Concurrency", "Mean"))
    yield "request_concurrency", {"total": {"mean": concurrency}}


def _distribution(told: Mapping[str, str | None], cell: str | None) -> dict[str, Any]:
    listed = _percentiles(cell, told["median"])
    return {**told, **listed, "percentiles": {key: value for key, value in listed.items() if key.startswith("p")}}


def _percentiles(cell: str | None, median: str | None) -> dict[str, float]:
    listed, middle = facts.seconds_list(_json(cell)), values.number(median)
    if listed is None or len(listed) != len(_LISTED) or middle is None:
        return {}
    low, high = (listed[place] for place in _QUARTERS)
    return dict(zip(_LISTED, listed, strict=True)) if low <= middle <= high else {}


def _json(cell: str | None) -> Any:
    try:
        return json.loads(cell or "{}")
    except (ValueError, RecursionError):
        return {}
