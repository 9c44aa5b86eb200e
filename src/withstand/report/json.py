"""``summary.json``: per stage the field names of vLLM's result file, so that existing scripts read it, then ours.

Unknown is null. No number is NaN or infinite: JSON has neither, and a strict reader refuses the whole file.
"""

import math
from typing import Any

import msgspec

from withstand.control.limit import Limit
from withstand.metrics.doubts import Doubt
from withstand.metrics.ledger import Ledger
from withstand.metrics.summary import PERCENTILES, Distribution, Interval, Off, StageSummary, Summary
from withstand.record import Status

SCHEMA = 1

_BOUNDED = ("ttft", "tpot", "itl", "e2el", "response")
_LATENCIES = ("ttft", "tpot", "itl", "itl_per_token", "itl_request_mean", "e2el", "response", "ttft_scheduled")


def summary_json(summary: Summary, limit: Limit | None = None) -> bytes:
    """The whole file, indented, with a newline at its end; with the limit where one was looked for."""
    document = {
        "schema": SCHEMA,
        "complete": summary.complete,
        "left_out": [msgspec.to_builtins(one) for one in summary.left_out],
        "notes": summary.notes,
        "target": summary.target,
        "economy": None if summary.economy is None else msgspec.to_builtins(summary.economy),
        "cold_start": None if summary.cold_start is None else msgspec.to_builtins(summary.cold_start),
        "doubts": [_doubt(doubt) for doubt in summary.doubts],
        "stages": [_stage(stage, summary) for stage in summary.stages],
    }
    if limit is not None:
        document["limit"] = msgspec.to_builtins(limit)
    return msgspec.json.format(msgspec.json.encode(finite(document)), indent=2) + b"\n"


def finite(value: Any) -> Any:
    """The same tree; what is not finite is unknown."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def _stage(stage: StageSummary, summary: Summary) -> dict[str, Any]:
    latencies = {name: getattr(stage, name) for name in _LATENCIES}
    whose = {"name": stage.name, "phase": stage.phase, "backend": summary.backend, "model_id": summary.model_id}
    fields = whose | _asked(stage) | _came_to(stage)
    for name, distribution in latencies.items():
        fields |= _distribution(name, distribution)
    fields["intervals"] = {name: _intervals(distribution) for name, distribution in latencies.items()}
    fields["self_check"] = _self_check(stage)
    fields["server"] = None if stage.server is None else msgspec.to_builtins(stage.server)
    fields["agent"] = None if stage.agent is None else msgspec.to_builtins(stage.agent)
    fields["layers"] = None if stage.layers is None else msgspec.to_builtins(stage.layers)
    fields["doubts"] = [_doubt(doubt) for doubt in stage.doubts]
    return fields


def _asked(stage: StageSummary) -> dict[str, Any]:
    load = stage.load
    return {
        "num_prompts": load.num_prompts if load.num_prompts is not None else stage.attempted,
        "request_rate": "inf" if load.arrivals == "inf" else load.request_rate,
        "arrivals": load.arrivals,
        "burstiness": load.burstiness,
        "max_concurrency": load.max_concurrency,
        "duration_limit_s": load.duration_s,
        "stopped_early": load.stopped_early,
        "ended_by": stage.ended_by,
        "cut_short": stage.cut_short,
    }


def _came_to(stage: StageSummary) -> dict[str, Any]:
    return {
        "duration": stage.duration_s,
        "attempted": stage.attempted,
        "completed": stage.completed,
        "failed": stage.failed,
        "success_rate": stage.success_rate,
        "statuses": stage.statuses,
        "errors": stage.errors,
        "errors_by_status": stage.errors_by_status,
        "finish_reasons": stage.finish_reasons,
        "total_input_tokens": stage.total_input_tokens,
        "total_output_tokens": stage.total_output_tokens,
        "tokens_from": stage.tokens_from,
        "ledger": None if stage.ledger is None else _ledger(stage.ledger),
        "output_events": stage.output_events,
        "shared_stamps": stage.shared_stamps,
        "request_throughput": stage.request_throughput,
        "request_goodput": stage.request_goodput,
        "output_throughput": stage.output_throughput,
        "output_goodput": stage.output_goodput,
        "total_token_throughput": stage.total_token_throughput,
        "max_output_tokens_per_s": stage.output_throughput_peak,
        "max_concurrent_requests": stage.concurrency_peak,
        "mean_concurrent_requests": stage.concurrency_mean,
        "scheduled_rate": stage.scheduled_rate,
        "achieved_rate": stage.achieved_rate,
        "steady": None if stage.steady is None else msgspec.structs.asdict(stage.steady),
        "cost": None if stage.cost is None else msgspec.to_builtins(stage.cost),
        "energy": None if stage.energy is None else msgspec.to_builtins(stage.energy),
        "facts": stage.facts,
    }


def _ledger(ledger: Ledger) -> dict[str, Any]:
    """A column that nobody filled is unknown, not 0."""
    columns = {name: column if column.answers else None for name, column in ledger.columns()}
    return {
        **msgspec.to_builtins(columns),
        "text_by": ledger.text_by,
        "text_exact": ledger.text_exact,
        "checks": [
            {**msgspec.to_builtins(check), "ratio": check.ratio, "differs": check in ledger.disagreements}
            for check in ledger.checks
        ],
    }


def _distribution(name: str, distribution: Distribution) -> dict[str, Any]:
    percentiles = distribution.percentiles
    return {
        f"mean_{name}_ms": distribution.mean,
        f"median_{name}_ms": percentiles.get("p50"),
        f"std_{name}_ms": distribution.std,
        f"min_{name}_ms": distribution.min,
        f"max_{name}_ms": distribution.max,
        **{f"p{p}_{name}_ms": percentiles.get(f"p{p}") for p in PERCENTILES},
    }


def _intervals(distribution: Distribution) -> dict[str, list[float | None]]:
    return {key: _ends(interval) for key, interval in distribution.intervals.items()}


def _ends(interval: Interval) -> list[float | None]:
    return [interval.low, interval.high]


def _self_check(stage: StageSummary) -> dict[str, Any]:
    """Our own lateness (sends against the instant when all allowed them), our own error, and each worker's account."""
    late, error = stage.lateness, stage.client_error
    return {
        "sends": late.n,
        "lateness_p50_ms": late.percentiles.get("p50"),
        "lateness_p99_ms": late.percentiles.get("p99"),
        "lateness_max_ms": late.max,
        "never_sent": stage.statuses.get(Status.NOT_SENT, 0),
        "unsure_gaps": stage.unsure_gaps,
        "error_ms": None if error is None else {name: _off(getattr(error, name)) for name in _BOUNDED},
        "load_missing_share": None if error is None else error.rate_share,
        "workers": [msgspec.to_builtins(health) for health in stage.health],
    }


def _off(off: Off) -> dict[str, float | None]:
    return {"mean": off.mean, "p50": off.p50, "p99": off.p99}


def _doubt(doubt: Doubt) -> dict[str, Any]:
    return {
        "kind": doubt.kind.value,
        "sentence": doubt.sentence,
        "remedy": doubt.remedy,
        "blocking": doubt.blocking,
    }
