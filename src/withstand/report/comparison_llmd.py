"""The llm-d Benchmark Report, version 0.2: a YAML document, on one line, for each side at each set of conditions.

It is the nearest thing to a common format, and has no place for a comparison, an interval or a doubt: the numbers go
into it, doubts go along as keywords. A metric without a mean is left out, for the format demands one.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from withstand.compare.shape import Comparison, Group, Side, Volume
from withstand.report.json import finite

VERSION = "0.2"

_LATENCIES = {
    "ttft": ("time_to_first_token", "ms"),
    "tpot": ("time_per_output_token", "ms/token"),
    "itl": ("inter_token_latency", "ms/token"),
    "e2el": ("request_latency", "ms"),
    "e2el_per_token": ("normalized_time_per_output_token", "ms/token"),
}
_THROUGHPUTS = {
    "output_throughput": ("output_token_rate", "tokens/s"),
    "input_throughput": ("input_token_rate", "tokens/s"),
    "total_token_throughput": ("total_token_rate", "tokens/s"),
    "request_throughput": ("request_rate", "queries/s"),
}
_STATISTICS = {
    **{p: p for p in ("mean", "min", "max", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")},
    "median": "p50",
    "std": "stddev",
    "p99.9": "p99p9",
}
_UNKNOWN = "unknown"

Values = dict[str, dict[str, float]]
"""Metric → statistic → value."""


def comparison_llmd(comparison: Comparison, now: str) -> str:
    """A stream of YAML documents."""
    experiment = _digest(now, *(source for side in comparison.sides for source in side.sources))
    reports = [
        _report(comparison, group, side, experiment)
        for group in comparison.groups
        for side in range(len(comparison.sides))
    ]
    return "".join(f"---\n{msgspec.json.encode(finite(report)).decode()}\n" for report in reports)


def _report(comparison: Comparison, group: Group, place: int, experiment: str) -> dict[str, Any]:
    side = comparison.sides[place]
    volume = group.volumes[place] if group.volumes else Volume()
    doubts = {doubt.kind.value for row in group.rows for doubt in row.cells[place].doubts}
    doubts |= {doubt.kind.value for doubt in (*side.doubts, *comparison.doubts)}
    run = {
        "uid": _digest(experiment, group.label, str(place)),
        "eid": experiment,
        "description": f"{side.label} at {group.label}",
        "keywords": [side.label, group.label, *(f"doubt:{kind}" for kind in sorted(doubts))],
        "time": {"duration": f"PT{volume.duration_s}S"} if volume.duration_s is not None else None,
    }
    scenario = {"stack": [_component(side)], "load": _load(group, side, volume)}
    aggregate = _known({"requests": _requests(volume), **_performance(_values(group, place))})
    results = {"request_performance": {"aggregate": aggregate}}
    return {"version": VERSION, "run": _known(run), "scenario": _known(scenario), "results": results}


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]


def _component(side: Side) -> dict[str, Any]:
    """What was measured; the format's own kind for engines demands the hardware, which is not known here."""
    measured = {"kind": "generic", "tool": side.label, "tool_version": _UNKNOWN, "model": {"name": side.model}}
    metadata = {"label": side.label, "cfg_id": _digest(side.label, side.model or "")}
    return {"metadata": metadata, "standardized": measured, "native": {}}


def _load(group: Group, side: Side, volume: Volume) -> dict[str, Any] | None:
    """None where the length of the prompts is not known: the format demands it."""
    if volume.input_tokens is None or not volume.completed:
        return None
    standardized = {
        "tool": side.tool,
        "tool_version": _UNKNOWN,
        "source": _UNKNOWN,
        "input_seq_len": {"distribution": "other", "value": volume.input_tokens / volume.completed},
        "rate_qps": group.rate,
        "concurrency": group.concurrency,
    }
    native = {"config": group.conditions}
    return {"metadata": {"description": group.label}, "standardized": _known(standardized), "native": native}


def _requests(volume: Volume) -> dict[str, int] | None:
    """What is missing did not complete; whether it was answered with an error is not known here."""
    if volume.attempted is None:
        return None
    missing = None if volume.completed is None else volume.attempted - volume.completed
    return _known({"total": volume.attempted, "incomplete": missing, "failures": 0 if missing == 0 else None})


def _values(group: Group, place: int) -> Values:
    found: Values = {}
    for row in group.rows:
        name, _, statistic = row.metric.partition(".")
        amount = row.cells[place].value
        if amount is not None:
            found.setdefault(name, {})[_STATISTICS.get(statistic or "mean", "")] = amount
    return found


def _performance(values: Values) -> dict[str, Any]:
    sections = {"latency": _LATENCIES, "throughput": _THROUGHPUTS}
    return {section: dict(_statistics(names, values)) for section, names in sections.items()}


def _statistics(names: dict[str, tuple[str, str]], values: Values) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, (theirs, units) in names.items():
        known = {statistic: amount for statistic, amount in values.get(name, {}).items() if statistic}
        if "mean" in known:
            yield theirs, {"units": units, **known}
