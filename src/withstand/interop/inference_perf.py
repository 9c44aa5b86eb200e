"""inference-perf's lifecycle reports: a summary, one a stage, the single requests, and the server's own view. Seconds.

Its inter_token_latency counts the tokens of one chunk as 0 apart; its latency starts at the real send, so how far the
load generator was behind stands apart, in schedule_delay.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from withstand.interop import facts, values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place
from withstand.record import TokensFrom

_STATS = {
    "request_latency": "e2el",
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
    "normalized_time_per_output_token": "e2el_per_token",
    "inter_token_latency": "itl_tokens",
}
_AT_SERVER = {
    "request_latency": "server_e2el", "time_to_first_token": "server_ttft", "time_per_output_token": "server_tpot",
}  # fmt: skip
_NUMBERS = {
    "output_tokens_per_sec": "output_throughput",
    "input_tokens_per_sec": "input_throughput",
    "total_tokens_per_sec": "total_token_throughput",
    "requests_per_sec": "request_throughput",
}


def recognises(value: Mapping[str, Any]) -> bool:
    """A load summary beside successes and failures."""
    return {"load_summary", "successes", "failures"} <= value.keys() and "count" in values.mapping(value["successes"])


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """One report; without latencies as a client sees them it is the server's."""
    good = values.mapping(value["successes"])
    if "latency" in good:
        return [_of_client(value, good, place)]
    return [_of_server(good, place)]


def _of_client(value: Mapping[str, Any], good: Mapping[str, Any], place: Place) -> ImportedRun:
    run = place.builder("inference-perf report", "inference-perf")
    load, failures = values.mapping(value["load_summary"]), values.mapping(value["failures"])
    run.number("completed", good.get("count"), said="successes.count")
    run.number("failed", failures.get("count"), said="failures.count")
    run.number("attempted", load.get("count"), said="load_summary.count")
    run.number("duration_s", value.get("benchmark_time_seconds"), said="benchmark_time_seconds")
    for key, name in _STATS.items():
        run.spread(name, values.mapping(values.mapping(good["latency"]).get(key)), 1000.0, said=key)
    run.spread("schedule_delay", values.mapping(load.get("schedule_delay")), 1000.0, said="schedule_delay")
    for key, name in _NUMBERS.items():
        run.number(name, values.mapping(good.get("throughput")).get(key), said=key)
    _lengths(run, good)
    _load(run, load)
    run.note(["e2el"], "ends with the response; begins with the real send, however late that was.")
    return run.build()


def _lengths(run: RunBuilder, good: Mapping[str, Any]) -> None:
    run.number("mean_input_tokens", values.mapping(good.get("prompt_len")).get("mean"), said="prompt_len mean")
    run.number("mean_output_tokens", values.mapping(good.get("output_len")).get("mean"), said="output_len mean")


def _load(run: RunBuilder, load: Mapping[str, Any]) -> None:
    run.rate(load.get("requested_rate"))
    run.number("achieved_rate", load.get("achieved_rate"), said="achieved_rate")
    run.note(["achieved_rate"], "all sends over the time of sending, one more than its gaps.")
    run.condition("max_concurrency", load.get("concurrency"))
    run.label("send_duration_s", load.get("send_duration"))


def _of_server(good: Mapping[str, Any], place: Place) -> ImportedRun:
    run = place.builder("inference-perf server report", "inference-perf")
    run.number("completed", good.get("count"), said="successes.count")
    for key, name in _AT_SERVER.items():
        run.spread(name, values.mapping(good.get(key)), 1000.0, said=key)
    run.number("request_throughput", good.get("rate"), said="rate")
    run.remark("Measured at the server, from histograms that may hold other requests too: no client saw these times.")
    _lengths(run, good)
    return run.build()


# Single requests


def recognises_requests(value: Sequence[Any]) -> bool:
    """``per_request_lifecycle_metrics.json``."""
    return bool(value) and all(
        isinstance(item, Mapping) and {"start_time", "end_time", "info", "error"} <= item.keys() for item in value
    )


def read_requests(value: Sequence[Mapping[str, Any]], place: Place) -> list[ImportedRun]:
    """Facts; its stamps are of tokens, not of chunks, so gaps are not to be had from them."""
    run = place.builder("inference-perf requests", "inference-perf")
    facts.attach(run, [_row(item) for item in value], gaps_known=False)
    return [run.build()]


def _row(item: Mapping[str, Any]) -> facts.Row:
    info, error = values.mapping(item.get("info")), values.mapping(item.get("error"))
    answer = values.mapping(info.get("response_metrics")) or info
    asked = values.mapping(values.mapping(info.get("request_metrics")).get("text")) or info
    sent_s, end_s = values.number(item.get("start_time")), values.number(item.get("end_time"))
    told = " ".join(str(part) for part in error.values() if part) or (None if item.get("error") is None else "failed")
    stamps = facts.seconds_list(answer.get("output_token_times"))
    seen = stamps if stamps and sent_s is not None and not told else None
    return facts.Row(
        sent_s=sent_s,
        ttft_s=seen[0] - (sent_s or 0) if seen else None,
        last_token_s=seen[-1] - (sent_s or 0) if seen else None,
        e2el_s=end_s - sent_s if end_s is not None and sent_s is not None and not told else None,
        prompt_tokens=values.whole(asked.get("input_tokens")),
        output_tokens=None if told else values.whole(answer.get("output_tokens")),
        tokens_from=None if told else TokensFrom.TOKENIZER,
        error=facts.error_line(told),
        status=facts.status_of(told),
    )
