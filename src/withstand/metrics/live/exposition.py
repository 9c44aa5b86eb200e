"""A run as it looks now, in Prometheus' text form. Pure.

Sums and counts are of the stage that goes on, by sketches: a mean of theirs is off by 1.6 % at most. A request counts
when its answer has ended, at the engine when its first token has come.
"""

from collections.abc import Iterator, Mapping

from withstand.metrics.live.snapshot import Current, Snapshot

_PREFIX = "withstand_run_"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_GAUGES = {
    "rate_asked": "Requests a second that the stage asks for.",
    "rate_sent": "Requests a second that were sent.",
    "rate_ended": "Good answers a second, of the last ten seconds.",
    "output_tokens_per_s": "Tokens a second, of the last ten seconds.",
    "in_flight": "Requests under way.",
}


def run_exposition(snapshot: Snapshot | None, run: str, price_per_hour: float | None) -> str:
    """For one scrape; None = there is no run, which is no fault."""
    if snapshot is None:
        return ""
    info = {"run": run, "target": snapshot.target or "", "model": snapshot.model or "", "state": snapshot.state}
    lines = [_head("info", "The run that is measured."), _line("info", info, 1)]
    if price_per_hour is not None:
        lines += [_head("price_per_hour", "What an hour costs."), _line("price_per_hour", {}, price_per_hour)]
    if current := snapshot.current:
        lines += _of_stage(current, {"run": run, "stage": current.name})
    return "\n".join([*lines, ""])


def _of_stage(current: Current, stage: Mapping[str, str]) -> Iterator[str]:
    yield _head("stage", "The stage that goes on.")
    yield _line("stage", {**stage, "index": str(current.index)}, 1)
    for name, text in _GAUGES.items():
        if (value := getattr(current, name)) is not None:
            yield _head(name, text)
            yield _line(name, stage, value)
    yield _head("requests_total", "Requests of this stage that are over.", "counter")
    yield _line("requests_total", {**stage, "outcome": "good"}, current.done - current.failed)
    yield _line("requests_total", {**stage, "outcome": "failed"}, current.failed)
    yield _head("latency_seconds", "As the client sees it, of this stage.", "summary")
    for metric, latency in current.latencies.items():
        whole, labels = latency.whole, {**stage, "metric": metric}
        for quantile, value_ms in (("0.5", whole.p50), ("0.95", whole.p95), ("0.99", whole.p99)):
            if value_ms is not None:
                yield _line("latency_seconds", {**labels, "quantile": quantile}, value_ms / 1e3)
        yield _line("latency_seconds_sum", labels, (whole.mean or 0.0) * whole.n / 1e3)
        yield _line("latency_seconds_count", labels, whole.n)


def _head(name: str, text: str, kind: str = "gauge") -> str:
    return f"# HELP {_PREFIX}{name} {text}\n# TYPE {_PREFIX}{name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    told = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in labels.items())
    return f"{_PREFIX}{name}{{{told}}} {value:.9g}" if told else f"{_PREFIX}{name} {value:.9g}"
