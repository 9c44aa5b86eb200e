"""llmperf: a summary, its individual responses, and sweeps of summaries keyed by concurrency. Seconds.

Its inter_token_latency is the whole latency / output tokens: it holds TTFT and is neither ITL nor TPOT.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from withstand.interop import facts, values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place
from withstand.record import Status, TokensFrom

_STAT = re.compile(
    r"^results_(?P<metric>ttft_s|end_to_end_latency_s|inter_token_latency_s|request_output_throughput_token_per_s)_"
    r"(?:quantiles_)?(?P<stat>mean|min|max|stddev|p\d+)$"
)
_METRICS = {
    "ttft_s": ("ttft", 1000.0),
    "end_to_end_latency_s": ("e2el", 1000.0),
    "inter_token_latency_s": ("e2el_per_token", 1000.0),
    "request_output_throughput_token_per_s": ("speed_per_request", 1.0),
}
_DIGEST_KEY = "first-time-to-token_mean_in_ms"
_NOTE = "ends with the response, over all chunks."


def recognises(value: Mapping[str, Any]) -> bool:
    """A summary, or such by concurrency."""
    return _is_summary(value) or _is_sweep(value, _is_summary)


def _is_summary(value: object) -> bool:
    return isinstance(value, Mapping) and any(_STAT.match(key) for key in value)


def _is_digest(value: object) -> bool:
    return isinstance(value, Mapping) and _DIGEST_KEY in value


def _is_sweep(value: Mapping[str, Any], kind: Any) -> bool:
    return bool(value) and all(kind(item) for item in value.values())


def recognises_digest(value: Mapping[str, Any]) -> bool:
    """A wrapper's short table by concurrency."""
    return _is_sweep(value, _is_digest)


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """One run a summary."""
    if _is_summary(value):
        return [_summary(value, place)]
    return [_summary(item, place.at(f"key {key}")) for key, item in value.items()]


def _summary(value: Mapping[str, Any], place: Place) -> ImportedRun:
    run = place.builder("llmperf summary", "llmperf", None)
    for key, given in value.items():
        found = _STAT.match(key)
        if found:
            name, scale = _METRICS[found["metric"]]
            run.stat(name, found["stat"].replace("stddev", "std"), given, scale, said=key)
    _numbers(run, value)
    _conditions(run, value)
    run.note(["e2el"], _NOTE)
    return run.build()


def _numbers(run: RunBuilder, value: Mapping[str, Any]) -> None:
    run.number("completed", value.get("results_num_completed_requests"), said="results_num_completed_requests")
    run.number("failed", value.get("results_number_errors"), said="results_number_errors")
    run.number("output_throughput", value.get("results_mean_output_throughput_token_per_s"))
    run.number("request_throughput", value.get("results_num_completed_requests_per_min"), 1 / 60)
    run.number("mean_output_tokens", value.get("results_number_output_tokens_mean"))
    run.number("mean_input_tokens", value.get("results_number_input_tokens_mean"))


def _conditions(run: RunBuilder, value: Mapping[str, Any]) -> None:
    run.condition("model", value.get("model"))
    run.condition("engine", value.get("framework"))
    run.condition("max_concurrency", value.get("num_concurrent_requests"))
    run.condition("input_tokens", value.get("mean_input_tokens"))
    run.condition("output_tokens", value.get("mean_output_tokens"))
    run.condition("num_prompts", value.get("num_requests_started"))
    run.label("version", value.get("version"))


def read_digest(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """A wrapper's short table: its latency per token is llmperf's, TTFT and all."""
    return [_digest(item, place.at(f"key {key}")) for key, item in value.items()]


def _digest(item: Mapping[str, Any], place: Place) -> ImportedRun:
    run = place.builder("digest of llmperf", "llmperf")
    run.stat("ttft", "mean", item.get(_DIGEST_KEY), said=_DIGEST_KEY)
    run.stat("e2el_per_token", "mean", item.get("latency_ms_per_token"), said="latency_ms_per_token")
    run.number("output_throughput", item.get("throughput_token_per_s"), said="throughput_token_per_s")
    run.condition("max_concurrency", item.get("concurrency"))
    run.condition("input_tokens", item.get("input_token_length"))
    run.condition("output_tokens", item.get("output_token_length"))
    return run.build()


def recognises_responses(value: Sequence[Any]) -> bool:
    """A list of individual responses."""
    return bool(value) and all(
        isinstance(item, Mapping) and {"ttft_s", "end_to_end_latency_s"} <= item.keys() for item in value
    )


def read_responses(value: Sequence[Mapping[str, Any]], place: Place) -> list[ImportedRun]:
    """Facts without instants of sending, hence no rates."""
    run = place.builder("llmperf responses", "llmperf")
    facts.attach(run, [_row(item) for item in value], gaps_known=False)
    run.note(["e2el"], _NOTE)
    return [run.build()]


def _row(item: Mapping[str, Any]) -> facts.Row:
    told = item.get("error_msg") or item.get("error_code")
    good = not told
    return facts.Row(
        ttft_s=values.number(item.get("ttft_s")) if good else None,
        e2el_s=values.number(item.get("end_to_end_latency_s")) if good else None,
        prompt_tokens=values.whole(item.get("number_input_tokens")),
        output_tokens=values.whole(item.get("number_output_tokens")) if good else None,
        tokens_from=TokensFrom.TOKENIZER if good else None,
        error=facts.error_line(told),
        status=Status.OK if good else facts.status_of(f"{item.get('error_code')} {told}"),
    )
