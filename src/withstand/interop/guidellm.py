"""GuideLLM's ``benchmarks.json``, 0.2 to 0.8. Statistics of the successful requests only.

Traps of this format: request_latency is in seconds beside keys in ms; inter_token_latency is one mean a request, our
TPOT; time_per_output_token kept its name and changed its meaning (without the first token until 0.3, the whole latency
since), so it is told by its arithmetic; throughputs are means of a rate over time.
"""

from collections.abc import Callable, Mapping
from typing import Any

from withstand.interop import facts, values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place
from withstand.record import Status, TokensFrom

_STATS = {
    "time_to_first_token_ms": ("ttft", 1.0),
    "time_to_first_output_token_ms": ("ttft_output", 1.0),
    "inter_token_latency_ms": ("tpot", 1.0),
    "request_latency": ("e2el", 1000.0),
}
_RATES = {
    "requests_per_second": ("request_throughput", "completed"),
    "output_tokens_per_second": ("output_throughput", "total_output_tokens"),
}
_OF_STATUS = {"successful": "completed", "errored": "failed", "incomplete": "incomplete"}
_NEAR = 0.05
_PERCENTILES = {"p001": "p0.1", "p01": "p1", "p05": "p5", "p999": "p99.9"}
NOTES = {
    "tpot": "GuideLLM's inter_token_latency: one mean a request; newer versions weigh it by the request's tokens.",
    "e2el": "ends with the response, not with the last token.",
    "request_throughput": "GuideLLM's mean of the rate over time.",
    "output_throughput": "GuideLLM's mean of the rate over time.",
    "concurrency_mean": "weighted by time, all requests.",
}


def recognises(value: Mapping[str, Any]) -> bool:
    """A list of benchmarks with GuideLLM's metrics."""
    listed = value.get("benchmarks")
    return isinstance(listed, list) and any(_metrics(item) for item in listed)


def _metrics(item: object) -> Mapping[str, Any]:
    metrics = item.get("metrics") if isinstance(item, Mapping) else None
    return metrics if isinstance(metrics, Mapping) and "time_to_first_token_ms" in metrics else {}


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """One run a benchmark."""
    version = values.text(values.mapping(value.get("metadata")).get("guidellm_version"))
    listed = [(i, item) for i, item in enumerate(value["benchmarks"]) if _metrics(item)]
    return [
        run_of(item, place.at(f"benchmarks[{i}]").builder("GuideLLM JSON", "GuideLLM", version), value)
        for i, item in listed
    ]


def run_of(item: Mapping[str, Any], run: RunBuilder, report: Mapping[str, Any]) -> ImportedRun:
    """One benchmark; ``report`` is the file that it stands in."""
    metrics = _metrics(item)
    _counts(run, item, metrics)
    for key, (name, scale) in _STATS.items():
        _spread(run, name, good(metrics, key), scale, key)
    _token_time(run, metrics)
    for key, (name, counted) in _RATES.items():
        rate_over_time(run, name, good(metrics, key).get("mean"), _counted(run, metrics, counted), key)
    concurrency = values.mapping(values.mapping(metrics.get("request_concurrency")).get("total"))
    run.number("concurrency_mean", concurrency.get("mean"))
    _conditions(run, item, report)
    _facts(run, item)
    for name, definition in NOTES.items():
        run.note([name], definition)
    return run.build()


def good(metrics: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The distribution over successful requests."""
    return values.mapping(values.mapping(metrics.get(key)).get("successful"))


def _spread(run: RunBuilder, name: str, distribution: Mapping[str, Any], scale: float, said: str) -> None:
    percentiles = values.mapping(distribution.get("percentiles"))
    flat = {_PERCENTILES.get(key, key): value for key, value in percentiles.items()}
    flat |= {"mean": distribution.get("mean"), "std": distribution.get("std_dev")}
    flat |= {"median": distribution.get("median")}
    flat |= {"min": distribution.get("min"), "max": distribution.get("max")}
    count, completed = values.whole(distribution.get("count")), run.numbers.get("completed")
    if count != 0:
        run.of(name, None if count and completed and count > completed else count)  # of tokens, as newer ones weigh
        run.spread(name, flat, scale, said=said)


def _counts(run: RunBuilder, item: Mapping[str, Any], metrics: Mapping[str, Any]) -> None:
    totals = item.get("request_totals") or metrics.get("request_totals")
    totals = totals or values.mapping(item.get("scheduler_metrics")).get("requests_made")
    for status, name in _OF_STATUS.items():
        run.number(name, values.mapping(totals).get(status), said=f"request_totals.{status}")
    run.number("attempted", values.mapping(totals).get("total"), said="request_totals.total")
    run.number("duration_s", item.get("duration"), said="duration")
    run.number("total_output_tokens", _total(good(metrics, "output_token_count")))
    run.number("total_input_tokens", _total(good(metrics, "prompt_token_count")))


def _total(distribution: Mapping[str, Any]) -> float | None:
    total = values.number(distribution.get("total_sum"))
    return None if total is None or not distribution.get("count") else float(round(total))


def _counted(run: RunBuilder, metrics: Mapping[str, Any], name: str) -> float | None:
    """A CSV has no totals, but the mean of the answers."""
    mean = values.number(good(metrics, "output_token_count").get("mean"))
    completed = run.numbers.get("completed")
    total = mean * completed if mean and completed and name == "total_output_tokens" else None
    return run.numbers.get(name, total)


def rate_over_time(run: RunBuilder, name: str, value: object, count: float | None, said: str) -> None:
    """A mean of a rate over time stands for count / duration only where it is that."""
    rate, seconds = values.number(value), run.numbers.get("duration_s")
    if rate and count and seconds and abs(rate - count / seconds) > _NEAR * count / seconds:
        run.leave(said, f"a mean of the rate over time, {rate:,.4g}; {count:,.0f} in {seconds:,.4g} s are "
                        f"{count / seconds:,.4g}.")  # fmt: skip
        return
    run.number(name, value, said=said)


def _token_time(run: RunBuilder, metrics: Mapping[str, Any]) -> None:
    """Which of its meanings time_per_output_token has, by the numbers beside it."""
    key = "time_per_output_token_ms"
    distribution = good(metrics, key)
    mean, tokens = values.number(distribution.get("mean")), good(metrics, "output_token_count").get("mean")
    n, tpot, e2el = values.number(tokens), run.value("tpot"), run.value("e2el")
    if not mean:
        return
    over_n = tpot * (n - 1) / n if tpot and n else None
    whole = e2el / n if e2el and n else None
    fits = [name for name, would_be in (("tpot_over_n", over_n), ("e2el_per_token", whole)) if _is(mean, would_be)]
    if len(fits) == 1:
        _spread(run, fits[0], distribution, 1.0, key)
    else:
        run.leave(key, "its meaning changed between versions, and the numbers beside it do not tell which this is.")


def _is(value: float, would_be: float | None) -> bool:
    return would_be is not None and abs(value - would_be) <= _NEAR * would_be


def _conditions(run: RunBuilder, item: Mapping[str, Any], report: Mapping[str, Any]) -> None:
    config = values.mapping(item.get("config")) or values.mapping(item.get("args"))
    strategy = values.mapping(config.get("strategy"))
    kind = values.text(strategy.get("type_"))
    run.rate("inf" if kind in {"throughput", "concurrent", "synchronous"} else strategy.get("rate"))
    run.condition("max_concurrency", 1 if kind == "synchronous" else strategy.get("streams"))
    run.label("strategy", kind)
    worker, backend = values.mapping(item.get("worker")), values.mapping(config.get("backend"))
    run.condition("model", backend.get("model") or worker.get("backend_model"))
    run.condition("backend", backend.get("kind") or worker.get("backend_type"))
    run.condition("dataset", values.mapping(item.get("request_loader")).get("data"))
    _dataset(run, values.mapping(values.mapping(report.get("config")).get("spec")).get("data"))


def _dataset(run: RunBuilder, data: object) -> None:
    first = values.mapping(data[0]) if isinstance(data, list) and data else {}
    run.condition("dataset", first.get("kind"))
    run.condition("input_tokens", first.get("prompt_tokens"))
    run.condition("output_tokens", first.get("output_tokens"))


# Per-request facts


def _facts(run: RunBuilder, item: Mapping[str, Any]) -> None:
    requests = values.mapping(item.get("requests"))
    lists = [(status, requests.get(status)) for status in _OF_STATUS]
    rows = [_row(entry, status) for status, listed in lists if isinstance(listed, list) for entry in listed]
    attempted = run.numbers.get("attempted")
    if rows and attempted and len(rows) != attempted:
        run.leave("per-request facts", f"the file holds {len(rows):,} of {attempted:,.0f} requests.")
        return
    if None in rows:
        run.leave("per-request facts", "a request has no start or no end.")
        return
    facts.attach(run, [row for row in rows if row], gaps_known=False)


def _row(entry: object, status: str) -> facts.Row | None:
    entry = values.mapping(entry)
    at = _instants(entry)
    started, ended = at("request_start", "start_time"), at("request_end", "end_time")
    was_good = status == "successful"
    if started is None or (ended is None and was_good):
        return None
    first, last = at("first_token_iteration", "first_token_time"), at("last_token_iteration", "last_token_time")
    return facts.Row(
        sent_s=started,
        ttft_s=first - started if first is not None and was_good else None,
        last_token_s=last - started if last is not None and was_good else None,
        e2el_s=ended - started if ended is not None and was_good else None,
        prompt_tokens=values.whole(entry.get("prompt_tokens")),
        output_tokens=values.whole(entry.get("output_tokens")) if was_good else None,
        tokens_from=TokensFrom.SERVER if was_good else None,
        error=facts.error_line(entry.get("error") or values.mapping(entry.get("info")).get("error")),
        status={"successful": Status.OK, "incomplete": Status.CANCELLED}.get(status, Status.HTTP_ERROR),
    )


def _instants(entry: Mapping[str, Any]) -> Callable[[str, str], float | None]:
    """Newer files have ``info.timings``, older ones the instants at the top."""
    timings = values.mapping(values.mapping(entry.get("info")).get("timings"))
    return lambda new, old: values.number(timings.get(new) if timings else entry.get(old))
