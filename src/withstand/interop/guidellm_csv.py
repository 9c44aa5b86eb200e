"""GuideLLM's CSV of 0.8: one row a benchmark under three rows of headings, with the same numbers as its JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from withstand.interop import facts, values
from withstand.interop.guidellm import run_of
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place

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
_HEADINGS = 3


def recognises(header: Sequence[str]) -> bool:
    """The first row of headings."""
    return {"Run Info", "Request Counts", "Time to First Token"} <= set(header)


def read(rows: Sequence[Sequence[str]], place: Place) -> list[ImportedRun]:
    """One run a row."""
    keys: list[_Key] = list(zip(*rows[:_HEADINGS], strict=False))
    return [_run(dict(zip(keys, row, strict=False)), place, i) for i, row in enumerate(rows[_HEADINGS:])]


def _run(cells: Mapping[_Key, str], place: Place, index: int) -> ImportedRun:
    about = values.mapping(_json(cells.get(("Runtime Info", "Metadata", ""))))
    backend = _json(cells.get(("Run Info", "Backend", "")))
    kind, _, load = cells.get(("Benchmark", "Strategy", ""), "").partition("@")
    totals = {s.lower(): cells.get(("Request Counts", s, "")) for s in ("Successful", "Incomplete", "Errored", "Total")}
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
        stats: dict[str, Any] = {key: cells.get((group, unit, label)) for label, key in _STATS.items()}
        listed = _percentiles(cells.get((group, unit, "Percentiles")), stats["median"])
        percentiles = {key: value for key, value in listed.items() if key.startswith("p")}
        yield name, {"successful": {**stats, **listed, "percentiles": percentiles}}
    concurrency = cells.get(("Server Throughput", "Successful Concurrency", "Mean"))
    yield "request_concurrency", {"total": {"mean": concurrency}}


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
