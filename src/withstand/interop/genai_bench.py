"""genai-bench: one file a point of load, with aggregates and one entry a request; seconds, or ms if it says so.

Its error_rate is always 0; failures are counted again. The instants of the sends are not in it. The experiment's
metadata lie in a file of their own, which holds no numbers.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from withstand.interop import facts, values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import Conditions, ImportedRun
from withstand.interop.source import Place
from withstand.record import Status, TokensFrom

_STATS = {"ttft": "ttft", "tpot": "tpot", "e2e_latency": "e2el"}
_NUMBERS = {
    "num_completed_requests": "completed",
    "num_error_requests": "failed",
    "num_requests": "attempted",
    "requests_per_second": "request_throughput",
    "mean_output_throughput_tokens_per_s": "output_throughput",
    "mean_input_throughput_tokens_per_s": "input_throughput",
    "mean_total_tokens_throughput_tokens_per_s": "total_token_throughput",
}
_METADATA = {
    "model": "model", "server_engine": "engine", "api_backend": "backend", "dataset_path": "dataset",
}  # fmt: skip


def recognises(value: Mapping[str, Any]) -> bool:
    """Aggregates with genai-bench's statistics."""
    aggregated = value.get("aggregated_metrics")
    return isinstance(aggregated, Mapping) and isinstance(aggregated.get("stats"), Mapping)


def is_metadata(value: Mapping[str, Any]) -> bool:
    """The file beside the points."""
    return {"benchmark_version", "traffic_scenario", "iteration_type"} <= value.keys()


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """One point of load."""
    run = place.builder("genai-bench JSON", "genai-bench")
    aggregated = value["aggregated_metrics"]
    to_s = {"s": 1.0, "ms": 1e-3}.get(str(value.get("_time_unit", "s")))
    if to_s is None:
        run.leave("all times", f"their unit is not known here ({value.get('_time_unit')}).")
        to_s = 0.0
    requests = [entry for entry in _list(value.get("individual_request_metrics")) if isinstance(entry, Mapping)]
    _numbers(run, aggregated, to_s)
    if to_s:
        _stats(run, aggregated["stats"], to_s * 1000)
        facts.attach(run, [_row(entry, to_s) for entry in requests], gaps_known=False)
    _conditions(run, aggregated)
    run.note(["e2el"], "ends with the response.")
    return [run.build()]


def _numbers(run: RunBuilder, aggregated: Mapping[str, Any], to_s: float) -> None:
    for key, name in _NUMBERS.items():
        run.number(name, aggregated.get(key), said=key)
    if to_s:
        run.number("duration_s", aggregated.get("run_duration"), to_s, said="run_duration")
    for key, name in (("num_input_tokens", "total_input_tokens"), ("num_output_tokens", "total_output_tokens")):
        run.number(name, values.mapping(aggregated["stats"].get(key)).get("sum"), said=f"{key} sum")
    if run.numbers.get("failed") and aggregated.get("error_rate") == 0:
        run.leave("error_rate", f"it is 0 beside {run.numbers['failed']:,.0f} failed requests.")


def _stats(run: RunBuilder, stats: Mapping[str, Any], to_ms: float) -> None:
    for key, name in _STATS.items():
        given = values.mapping(stats.get(key))
        run.spread(name, {**given, "std": given.get("stddev")}, to_ms, said=key)
    speed = values.mapping(stats.get("output_throughput"))
    run.spread("speed_per_request", {**speed, "std": speed.get("stddev")}, said="output_throughput")


def _conditions(run: RunBuilder, aggregated: Mapping[str, Any]) -> None:
    run.condition("max_concurrency", aggregated.get("num_concurrency"))
    run.condition("num_prompts", aggregated.get("num_requests"))
    run.label("scenario", aggregated.get("scenario"))
    run.rate("inf")


def described(conditions: Conditions, metadata: Mapping[str, Any]) -> Conditions:
    """With what the experiment's file knows of its points; its ``cmd`` may hold a key and is not read."""
    told = {name: values.text(metadata.get(key)) for key, name in _METADATA.items()}
    new = {name: value for name, value in told.items() if value and getattr(conditions, name) is None}
    version = values.text(metadata.get("benchmark_version"))
    labels = conditions.labels | ({"benchmark_version": version} if version else {})
    return msgspec.structs.replace(conditions, labels=labels, **new)


def _row(entry: Mapping[str, Any], to_s: float) -> facts.Row:
    error = None if entry.get("error_code") is None else f"{entry['error_code']} {entry.get('error_message') or ''}"
    good = error is None
    return facts.Row(
        ttft_s=values.scaled(entry.get("ttft"), to_s) if good else None,
        e2el_s=values.scaled(entry.get("e2e_latency"), to_s) if good else None,
        prompt_tokens=values.whole(entry.get("num_input_tokens")),
        output_tokens=values.whole(entry.get("num_output_tokens")) if good else None,
        tokens_from=TokensFrom.SERVER if good else None,
        error=facts.error_line(error),
        status=Status.OK if good else facts.status_of(error),
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
