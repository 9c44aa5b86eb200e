"""The counts in Prometheus' text form: pure."""

from collections.abc import Iterable, Iterator, Mapping

from withstand.gateway.counts import Counts, Histogram
from withstand.gateway.engine import Engine
from withstand.gateway.hosting.process import State
from withstand.gateway.policies import Prefix
from withstand.gateway.roster import Model, Roster

_PREFIX = "withstand_gateway_"
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def exposition(counts: Counts, roster: Roster, now_s: float, gauges: Mapping[str, tuple[int, str]]) -> str:
    """Everything, for one scrape; ``gauges`` have a name, a value now and a text."""
    routing = [*_engines(roster.engines.values(), now_s), *_prompts(roster.models.values())]
    now = _gauges(roster, gauges)
    return "\n".join([*_totals(counts), *_of_keys(counts), *now, *routing, *_histograms(counts), ""])


def _engines(engines: Iterable[Engine], now_s: float) -> Iterator[str]:
    """What each engine was sent, has to do, and has said of itself."""
    engines = tuple(engines)
    labels = {engine: _labels({"engine": engine.name}) for engine in engines}
    yield from _head("engine_requests_total", "counter", "Requests that were sent to an engine, repeated ones too.")
    yield from (f"{_PREFIX}engine_requests_total{labels[engine]} {engine.sent}" for engine in engines)
    yield from _head("engine_in_flight", "gauge", "Requests that an engine has to do.")
    yield from (f"{_PREFIX}engine_in_flight{labels[engine]} {engine.in_flight}" for engine in engines)
    yield from _head("engine_load", "gauge", "What the policies go by: with what others sent, and with errors.")
    yield from (f"{_PREFIX}engine_load{labels[engine]} {engine.load(now_s):.6g}" for engine in engines)
    yield from _head("engine_failing", "gauge", "Whether an engine is left alone after failures of requests.")
    yield from (f"{_PREFIX}engine_failing{labels[engine]} {int(engine.breaker.is_open(now_s))}" for engine in engines)
    checked = [engine for engine in engines if engine.health is not None]
    yield from _head("engine_healthy", "gauge", "Whether an engine's health checks have nothing against it.")
    yield from (f"{_PREFIX}engine_healthy{labels[engine]} {int(not engine.checkup.is_ill)}" for engine in checked)
    yield from _head("engine_polled_age_seconds", "gauge", "Since an engine was asked that has said what it has to do.")
    for engine in engines:
        if engine.unseen.said_s is not None:
            yield f"{_PREFIX}engine_polled_age_seconds{labels[engine]} {now_s - engine.unseen.said_s:.6g}"


def _prompts(models: Iterable[Model]) -> Iterator[str]:
    """The share of prompts that was sent to the same engine before: of policies that look for it."""
    looking = [(_labels({"model": m.name}), m.policy) for m in models if isinstance(m.policy, Prefix)]
    yield from _head("prefix_bytes_total", "counter", "Bytes of prompts, in whole blocks.")
    yield from (f"{_PREFIX}prefix_bytes_total{labels} {policy.asked_bytes}" for labels, policy in looking)
    yield from _head("prefix_hit_bytes_total", "counter", "Of these, what the engine had been sent before.")
    yield from (f"{_PREFIX}prefix_hit_bytes_total{labels} {policy.known_bytes}" for labels, policy in looking)


def _totals(counts: Counts) -> Iterator[str]:
    yield from _head("requests_total", "counter", "Requests that are over.")
    for (route, model, status, outcome), count in counts.requests.items():
        labels = _labels({"route": route, "model": model, "status": str(status), "outcome": outcome.value})
        yield f"{_PREFIX}requests_total{labels} {count}"
    yield from _head("output_tokens_total", "counter", "Tokens that engines say they made, of good answers alone.")
    for model, count in counts.tokens.items():
        yield f"{_PREFIX}output_tokens_total{_labels({'model': model})} {count}"
    yield from _head("without_usage_total", "counter", "Good answers whose tokens no engine told, so none are counted.")
    for model, count in counts.untold.items():
        yield f"{_PREFIX}without_usage_total{_labels({'model': model})} {count}"
    yield from _one(
        "retries_total", "counter", "Requests sent again because a quiet connection was closed.", counts.retries
    )
    yield from _one("failovers_total", "counter", "Requests sent to another engine.", counts.failovers)
    yield from _one(
        "out_of_descriptors_total", "counter", "Connections lost because of too few open files.", counts.no_descriptors
    )
    yield from _head("pd_fallbacks_total", "counter", "Requests that a decode engine did alone.")
    for reason, count in counts.fallbacks.items():
        yield f"{_PREFIX}pd_fallbacks_total{_labels({'reason': reason})} {count}"
    yield from _one("unreadable_total", "counter", "Connections that sent no acceptable request.", counts.unreadable)


def _of_keys(counts: Counts) -> Iterator[str]:
    yield from _head("key_limited_total", "counter", "Requests turned away by a limit or the budget of their key.")
    for (owner, limit), count in counts.limited.items():
        yield f"{_PREFIX}key_limited_total{_labels({'key': owner, 'limit': limit})} {count}"
    yield from _head("key_tokens_total", "counter", "Tokens by key; cached ones are among the prompt's.")
    for owner, sums in counts.used.items():
        for kind, count in (
            ("prompt", sums.prompt_tokens),
            ("cached", sums.cached_tokens),
            ("completion", sums.completion_tokens),
        ):
            yield f"{_PREFIX}key_tokens_total{_labels({'key': owner, 'kind': kind})} {count}"
    yield from _head("key_cost_usd_total", "counter", "What a key's requests have cost.")
    for owner, sums in counts.used.items():
        yield f"{_PREFIX}key_cost_usd_total{_labels({'key': owner})} {sums.cost_nusd / 1e9:.9f}"
    yield from _one("state_failures_total", "counter", "Times that the state could not be used.", counts.state_failures)


def _gauges(roster: Roster, gauges: Mapping[str, tuple[int, str]]) -> Iterator[str]:
    for name, (value, text) in gauges.items():
        yield from _one(name, "gauge", text, value)
    yield from _head("engine_up", "gauge", "Whether an engine that the gateway starts is up.")
    for engine in roster.engines.values():
        if engine.process is not None:
            up = int(engine.process.state is State.UP)
            yield f"{_PREFIX}engine_up{_labels({'engine': engine.name})} {up}"
    yield from _head("queued", "gauge", "Requests that wait for an engine that has room.")
    for name, model in roster.models.items():
        yield f"{_PREFIX}queued{_labels({'model': name})} {len(model.room)}"


def _histograms(counts: Counts) -> Iterator[str]:
    yield from _head("hop_seconds", "histogram", "Time of a request in the gateway alone, until the answer has ended.")
    yield from _buckets("hop_seconds", {}, counts.hop)
    yield from _head("loop_lag_seconds", "histogram", "How late the event loop comes to what is due.")
    yield from _buckets("loop_lag_seconds", {}, counts.lag)
    for name, text, histograms in (
        ("first_byte_seconds", "From the whole request to the answer's first byte.", counts.first_byte),
        ("request_seconds", "From the whole request to the answer's last byte.", counts.total),
    ):
        yield from _head(name, "histogram", text)
        for model, histogram in histograms.items():
            yield from _buckets(name, {"model": model}, histogram)
    yield from _head("cold_start_seconds", "histogram", "From the first who waits for an engine until it is ready.")
    for engine, histogram in counts.cold_start.items():
        yield from _buckets("cold_start_seconds", {"engine": engine}, histogram)


def _buckets(name: str, labels: Mapping[str, str], histogram: Histogram) -> Iterator[str]:
    total = 0
    for bound_ns, count in zip((*histogram.bounds_ns, None), histogram.counts, strict=True):
        total += count
        le = "+Inf" if bound_ns is None else f"{bound_ns / 1e9:g}"
        yield f"{_PREFIX}{name}_bucket{_labels({**labels, 'le': le})} {total}"
    yield f"{_PREFIX}{name}_sum{_labels(labels)} {histogram.sum_ns / 1e9:.9g}"
    yield f"{_PREFIX}{name}_count{_labels(labels)} {total}"


def _one(name: str, kind: str, text: str, value: int) -> Iterator[str]:
    yield from _head(name, kind, text)
    yield f"{_PREFIX}{name} {value}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {text}"
    yield f"# TYPE {_PREFIX}{name} {kind}"


def _labels(labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""
