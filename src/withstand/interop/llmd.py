"""The llm-d Benchmark Report, 0.1 and 0.2: every quantity carries its unit. Whose client measured it, it may tell.

Definitions are those of the client behind it; where it does not say more, names are taken at their word.
"""

from collections.abc import Mapping
from typing import Any

from withstand.interop import values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place

_STATS = {
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
    "inter_token_latency": "itl",
    "request_latency": "e2el",
    "normalized_time_per_output_token": "e2el_per_token",
}
_TO_MS = {"ms": 1.0, "s": 1000.0, "us": 1e-3, "ns": 1e-6}
_RATES = (
    ("requests_per_sec", "request_rate", "request_throughput"),
    ("output_tokens_per_sec", "output_token_rate", "output_throughput"),
    ("input_tokens_per_sec", "input_token_rate", "input_throughput"),
    ("total_tokens_per_sec", "total_token_rate", "total_token_throughput"),
)
_NEAR = 0.05
_PERCENTILES = {"p0p1": "p0.1", "p99p9": "p99.9"}


def recognises(value: Mapping[str, Any]) -> bool:
    """A report of either version."""
    return "request_performance" in values.mapping(value.get("results")) or (
        "scenario" in value and "latency" in values.mapping(value.get("metrics"))
    )


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """One report."""
    version = values.text(str(value.get("version", "")))
    run = place.builder("llm-d Benchmark Report", _harness(value), version)
    measured = values.mapping(value.get("metrics")) or values.mapping(
        values.mapping(values.mapping(value.get("results")).get("request_performance")).get("aggregate")
    )
    _times(run, values.mapping(measured.get("latency")))
    _counts(run, values.mapping(measured.get("requests")))
    _throughputs(run, values.mapping(measured.get("throughput")))
    run.number("duration_s", _duration_s(run, value, measured))
    _conditions(run, values.mapping(value.get("scenario")))
    return [run.build()]


def _harness(value: Mapping[str, Any]) -> str:
    load = values.mapping(values.mapping(value.get("scenario")).get("load"))
    standardized = values.mapping(load.get("standardized"))
    return values.text(load.get("name")) or values.text(standardized.get("tool")) or "unknown"


def _times(run: RunBuilder, latency: Mapping[str, Any]) -> None:
    for key, name in _STATS.items():
        given = values.mapping(latency.get(key))
        unit = str(given.get("units", "")).removesuffix("/token")
        if given and unit not in _TO_MS:
            run.leave(key, f"its unit is not known here ({given.get('units')}).")
        elif given:
            renamed = {_PERCENTILES.get(which, which): v for which, v in given.items()}
            run.spread(name, {**renamed, "std": given.get("stddev")}, _TO_MS[unit], said=key)


def _counts(run: RunBuilder, requests: Mapping[str, Any]) -> None:
    total, failed = values.whole(requests.get("total")), values.whole(requests.get("failures"))
    incomplete = values.whole(requests.get("incomplete")) or 0
    run.number("attempted", total, said="requests.total")
    run.number("failed", failed, said="requests.failures")
    run.number("incomplete", requests.get("incomplete"), said="requests.incomplete")
    if total is not None and failed is not None:
        run.number("completed", total - failed - incomplete, said="requests.total - failures - incomplete")
    run.number("mean_input_tokens", values.mapping(requests.get("input_length")).get("mean"))
    run.number("mean_output_tokens", values.mapping(requests.get("output_length")).get("mean"))


def _throughputs(run: RunBuilder, throughput: Mapping[str, Any]) -> None:
    for old, new, name in _RATES:
        given = throughput.get(old, throughput.get(new))
        run.number(name, values.mapping(given).get("mean") if isinstance(given, Mapping) else given, said=old)


def _duration_s(run: RunBuilder, value: Mapping[str, Any], measured: Mapping[str, Any]) -> float | None:
    times = values.mapping(measured.get("time"))
    start, stop = values.number(times.get("start")), values.number(times.get("stop"))
    if start is not None and stop is not None and stop < start:
        run.remark(f"It stops {start - stop:.1f} s before it starts (start {start:.1f}, stop {stop:.1f}).")
    told = values.number(times.get("duration"))
    whole = _iso_s(values.mapping(values.mapping(value.get("run")).get("time"))) if told is None else None
    if whole is not None and not _fits(run, whole):
        run.leave("run.time.duration", f"{whole:.4g} s are the time of the whole run: its rate and count tell another.")
        return None
    return whole if told is None else told


def _fits(run: RunBuilder, seconds: float) -> bool:
    rate, count = run.numbers.get("request_throughput"), run.numbers.get("completed")
    return not rate or not count or abs(rate * seconds - count) <= _NEAR * count


def _iso_s(times: Mapping[str, Any]) -> float | None:
    """``PT900S`` of newer reports."""
    told = values.text(times.get("duration"))
    return values.number(told[2:-1]) if told and told.startswith("PT") and told.endswith("S") else None


def _conditions(run: RunBuilder, scenario: Mapping[str, Any]) -> None:
    run.condition("model", values.mapping(scenario.get("model")).get("name"))
    engines = values.mapping(scenario.get("platform")).get("engine")
    if isinstance(engines, list) and engines:
        run.condition("engine", values.mapping(engines[0]).get("name"))
    load = values.mapping(scenario.get("load"))
    standard, arguments = values.mapping(load.get("standardized")), values.mapping(load.get("args"))
    run.rate(standard.get("rate_qps", arguments.get("qps_values")))
    run.condition("max_concurrency", standard.get("concurrency"))
    run.label("description", scenario.get("description"))
