"""What is asked of a Prometheus that watches a stack: recording rules, alerts, and a dashboard's panels. Pure.

Engines' names are those of ``wire.engine_metrics``, the new and the old ones of each: of one series only one is there,
and ``or`` takes it. Rates come before sums, sums before quotients; a mean is a quotient of rates, never of counters.
"""

import re
from typing import Final

from msgspec import Struct

from withstand.record import Seen
from withstand.wire.engine_metrics import ENGINES

WINDOW: Final = "30s"
_SPAN = re.compile(r"\[(\d+)([sm])\]")
_UNITS_S = {"s": 1, "m": 60}
_SCRAPES_IN_WINDOW = 4
"""A rate needs two of them, and one may be late."""
_TOKENS = (
    *("vllm:generation_tokens_total", "vllm:generation_tokens", "sglang:generation_tokens_total"),
    *("llamacpp:tokens_predicted_total", "tgi_request_generated_tokens_sum"),
)
_CLIENT = 'withstand_run_latency_seconds_{}{{metric="{}"}}'


class Panel(Struct, frozen=True):
    """A graph: its queries by their legends."""

    title: str
    unit: str
    queries: dict[str, str]
    row: str


def window_s(scrape_s: float) -> float:
    """Of which span rates and means are, in s."""
    return max(float(WINDOW.removesuffix("s")), _SCRAPES_IN_WINDOW * scrape_s)


def windowed(expression: str, scrape_s: float) -> str:
    """With no window shorter than scrapes so far apart need."""
    least_s = _SCRAPES_IN_WINDOW * scrape_s
    return _SPAN.sub(
        lambda span: span[0] if int(span[1]) * _UNITS_S[span[2]] >= least_s else f"[{least_s:g}s]", expression
    )


def _series(seen: Seen) -> list[str]:
    sums = (term for table in ENGINES.values() for one in table.get(seen, ()) for term in one)
    return [f"{term.name}{{{_labels(term.labels)}}}" for term in sums]


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    return ",".join([*(f'{key}="{value}"' for key, value in labels), 'priority=""'])


def _now(seen: Seen, by: str = "sum") -> str:
    return f"{by} by (service) ({' or '.join(_series(seen))})"


def _rate(names: list[str] | tuple[str, ...]) -> str:
    return f"sum by (service) ({' or '.join(f'rate({name}[{WINDOW}])' for name in names)})"


def _mean(total: Seen, count: Seen) -> str:
    return f"{_rate(_series(total))} / ({_rate(_series(count))} > 0)"


def _over(name: str, by: str = "service") -> str:
    """The mean of a histogram's values."""
    return f"sum by ({by}) (rate({name}_sum[{WINDOW}])) / (sum by ({by}) (rate({name}_count[{WINDOW}])) > 0)"


def _quantile(share: float, name: str) -> str:
    return f"histogram_quantile({share:g}, sum by (le) (rate({name}_bucket[{WINDOW}])))"


def _quantiles(metric: str) -> dict[str, str]:
    """Each is one line, however many stages there are: only one of them goes on."""
    name = 'max(withstand_run_latency_seconds{{metric="{}",quantile="{}"}})'
    return {f"p{share * 100:g}": name.format(metric, share) for share in (0.5, 0.95, 0.99)}


def _client_mean(metric: str) -> str:
    total, count = (f"sum(rate({_CLIENT.format(kind, metric)}[{WINDOW}]))" for kind in ("sum", "count"))
    return f"{total} / ({count} > 0)"


RULES: Final = {
    "withstand:running": _now(Seen.RUNNING),
    "withstand:waiting": _now(Seen.WAITING),
    "withstand:kv_share": _now(Seen.KV_SHARE, "avg"),
    "withstand:prefix_hit_share": f"{_mean(Seen.PREFIX_HITS, Seen.PREFIX_QUERIES)} or {_now(Seen.PREFIX_SHARE, 'avg')}",
    "withstand:preemptions:rate": _rate(_series(Seen.PREEMPTIONS)),
    "withstand:queue_seconds:mean": _mean(Seen.QUEUE_S, Seen.QUEUED),
    "withstand:prefill_seconds:mean": _mean(Seen.PREFILL_S, Seen.PREFILLED),
    "withstand:engine_ttft_seconds:mean": _mean(Seen.TTFT_S, Seen.ANSWERED),
    "withstand:output_tokens:rate": _rate(_TOKENS),
    "withstand:kv_transfer_seconds:mean": _over("vllm:nixl_xfer_time_seconds"),
    "withstand:kv_transfer_bytes:rate": f"sum by (service) (rate(vllm:nixl_bytes_transferred_sum[{WINDOW}]))",
    "withstand:hop_seconds:p99": _quantile(0.99, "withstand_gateway_hop_seconds"),
    "withstand:hop_seconds:mean": _over("withstand_gateway_hop_seconds"),
    "withstand:loop_lag_seconds:p99": _quantile(0.99, "withstand_gateway_loop_lag_seconds"),
    "withstand:client_ttft_seconds:mean": _client_mean("ttft"),
    "withstand:client_besides_engine_ttft_seconds": (
        f"({_client_mean('ttft')}) - sum({_rate(_series(Seen.TTFT_S))}) / (sum({_rate(_series(Seen.ANSWERED))}) > 0)"
    ),
    "withstand:cost_per_million_output_tokens": (
        "withstand_run_price_per_hour * 1e6 / 3600 / on () group_left () (sum(withstand_run_output_tokens_per_s) > 0)"
    ),
}

_ANSWERS = 'route!~"/tokenize|/detokenize|/v1/messages/count_tokens"'
"""Not those that only count tokens, as this program itself asks for them."""
_STALLED = "withstand:running > 0 and on (service) withstand:output_tokens:rate == 0"
_REFUSED = 'sum(rate(withstand_gateway_requests_total{status=~"5.."}[1m]))'
_ALL = "(sum(rate(withstand_gateway_requests_total[1m])) > 0)"
_LOST = ("num_failed_transfers_total", "num_failed_transfers", "num_kv_expired_reqs_total", "num_kv_expired_reqs")
ALERTS: Final = {
    "ServiceDown": ("up == 0", "15s", "{{ $labels.service }} does not answer."),
    "EngineStalled": (_STALLED, "1m", "{{ $labels.service }} has requests and makes no tokens."),
    "QueueGrows": (
        "withstand:waiting > 0 and deriv(withstand:waiting[2m]) > 0.1",
        "1m",
        "More comes to {{ $labels.service }} than it can do; its queue grows.",
    ),
    "KvCacheFull": ("withstand:kv_share > 0.95", "1m", "The KV cache of {{ $labels.service }} is full."),
    "Preempting": ("withstand:preemptions:rate > 0.5", "1m", "{{ $labels.service }} computes requests again."),
    "GatewayErrors": (f"{_REFUSED} / {_ALL} > 0.01", "1m", "More than 1 % of the gateway's answers are 5xx."),
    "GatewayLags": ("withstand:loop_lag_seconds:p99 > 0.05", "1m", "The gateway's own loop is late; give it a core."),
    "KvTransfersLost": (
        " or ".join(f"rate(vllm:nixl_{name}[1m]) > 0" for name in _LOST),
        "0s",
        "KV of {{ $labels.service }} does not arrive where it decodes.",
    ),
}
"""Name → (expression, for how long, what it says)."""

_RUN, _ENGINE, _GATEWAY, _AGENT, _MACHINE = "The benchmark", "Engines", "Gateway and edge", "The agent", "The machine"
_EACH = "{{service}}"
_TOKENS_A_SECOND = "suffix: tok/s"
_STAGE_RATES = {"asked": "max(withstand_run_rate_asked)", "answered": "max(withstand_run_rate_ended)"}
_SO_FAR = {outcome: f'max(withstand_run_requests_total{{outcome="{outcome}"}})' for outcome in ("good", "failed")}
PANELS: Final = (
    Panel("Requests asked and answered", "reqps", _STAGE_RATES, _RUN),
    Panel(
        "Output tokens the client gets", _TOKENS_A_SECOND, {"tokens/s": "max(withstand_run_output_tokens_per_s)"}, _RUN
    ),
    Panel("TTFT at the client, of the stage", "s", _quantiles("ttft"), _RUN),
    Panel("ITL at the client, of the stage", "s", _quantiles("itl"), _RUN),
    Panel(
        "Client's TTFT minus the engine's (means)",
        "s",
        {"on the way and waiting": "withstand:client_besides_engine_ttft_seconds"},
        _RUN,
    ),
    Panel("Cost of a million output tokens", "short", {"cost": "withstand:cost_per_million_output_tokens"}, _RUN),
    Panel("Answers so far, of the stage", "short", _SO_FAR, _RUN),
    Panel(
        "Running and waiting",
        "short",
        {f"{_EACH} runs": "withstand:running", f"{_EACH} waits": "withstand:waiting"},
        _ENGINE,
    ),
    Panel("KV cache in use", "percentunit", {_EACH: "withstand:kv_share"}, _ENGINE),
    Panel(
        "Prefix cache: tokens found of those asked for", "percentunit", {_EACH: "withstand:prefix_hit_share"}, _ENGINE
    ),
    Panel("TTFT of the engine (mean)", "s", {_EACH: "withstand:engine_ttft_seconds:mean"}, _ENGINE),
    Panel(
        "In the queue, in prefill (means)",
        "s",
        {f"{_EACH} queue": "withstand:queue_seconds:mean", f"{_EACH} prefill": "withstand:prefill_seconds:mean"},
        _ENGINE,
    ),
    Panel("Output tokens", _TOKENS_A_SECOND, {_EACH: "withstand:output_tokens:rate"}, _ENGINE),
    Panel("Preemptions a second", "short", {_EACH: "withstand:preemptions:rate"}, _ENGINE),
    Panel("P/D: a transfer (mean)", "s", {_EACH: "withstand:kv_transfer_seconds:mean"}, _ENGINE),
    Panel("P/D: bytes a second", "Bps", {_EACH: "withstand:kv_transfer_bytes:rate"}, _ENGINE),
    Panel(
        "What the hop takes", "s", {"p99": "withstand:hop_seconds:p99", "mean": "withstand:hop_seconds:mean"}, _GATEWAY
    ),
    Panel(
        "Answers by status",
        "reqps",
        {"{{status}}": f"sum by (status) (rate(withstand_gateway_requests_total{{{_ANSWERS}}}[{WINDOW}]))"},
        _GATEWAY,
    ),
    Panel("In flight, by engine", "short", {"{{engine}}": "withstand_gateway_engine_in_flight"}, _GATEWAY),
    Panel("Waiting in the gateway", "short", {"{{model}}": "withstand_gateway_queued"}, _GATEWAY),
    Panel("Lag of the gateway's loop", "s", {"p99": "withstand:loop_lag_seconds:p99"}, _GATEWAY),
    Panel("Connections at the edge", "short", {"open": "nginx_connections_active"}, _GATEWAY),
    Panel(
        "Tasks by how they ended",
        "reqps",
        {"{{outcome}}": f"sum by (outcome) (rate(withstand_agent_requests_total[{WINDOW}]))"},
        _AGENT,
    ),
    Panel(
        "What a task takes (means)",
        "s",
        {
            "a task": _over("withstand_agent_task_seconds"),
            "a call of the model": _over("withstand_agent_model_seconds"),
            "a call of a tool": _over("withstand_agent_tool_seconds"),
        },
        _AGENT,
    ),
    Panel(
        "Cores busy",
        "percentunit",
        {"busy": f'1 - avg(rate(node_cpu_seconds_total{{mode="idle"}}[{WINDOW}]))'},
        _MACHINE,
    ),
    Panel("Memory that is left", "bytes", {"available": "node_memory_MemAvailable_bytes"}, _MACHINE),
)
STAGES: Final = "withstand_run_stage"
"""What a dashboard's annotations are made of: a stage's series is there while it goes on."""
HEARD: Final = "up"
"""1 where a target's page was taken, 0 where not."""
FIRING: Final = 'ALERTS{alertstate="firing"}'
"""A series for each alert that calls, while it does."""
