"""One row a stage for spreadsheets: full numbers, units in the headings, unknown as an empty cell.

A name that a spreadsheet would take for a formula is given a leading apostrophe, which it shows as text; control
characters are left out.
"""

import csv
import io
from collections.abc import Mapping, Sequence

from withstand.control.limit import Limit
from withstand.interop.values import plain
from withstand.metrics.agents import MEASURED
from withstand.metrics.ledger import Ledger
from withstand.metrics.summary import PERCENTILES, AgentSide, Distribution, StageSummary, Summary
from withstand.report.limit import worst

_LATENCIES = ("ttft", "ttft_scheduled", "tpot", "itl", "itl_per_token", "itl_request_mean", "e2el", "response")
_AGENT_COUNTS = ("tasks", "solved", "success_rate", "limited")
_AGENT_PERCENTILES = (50, 90, 99)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

Cell = str | float | None


def csv_text(summary: Summary, limit: Limit | None = None) -> str:
    """The whole file; lines end as RFC 4180 wants them."""
    rows = [_row(stage, summary) | _probe(stage, limit) for stage in summary.stages]
    if any(stage.agent for stage in summary.stages):
        rows = [row | _agent(stage.agent) for row, stage in zip(rows, summary.stages, strict=True)]
    return spreadsheet(rows)


def _probe(stage: StageSummary, limit: Limit | None) -> dict[str, Cell]:
    """What a search has found of a stage, and what it found in the end; no columns where there was no search."""
    if limit is None:
        return {}
    one = next((one for one in limit.probes if one.stage == stage.name), None)
    told = worst(one, limit.promises) if one else None
    return {
        "probe_load": one.load if one else None,
        "probe_found": one.look.standing.value if one else None,
        "probe_broken": str(one.look.promise) if one and one.look.promise else None,
        "probe_broken_share": told[0].value if told else None,
        "limit": limit.load,
        "limit_low": limit.interval.low,
        "limit_high": limit.interval.high,
    }


def spreadsheet(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Rows of equal keys, which become the headings."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(rows[0] if rows else [])
    writer.writerows([_cell(value) for value in row.values()] for row in rows)
    return out.getvalue()


def _row(stage: StageSummary, summary: Summary) -> dict[str, Cell]:
    return {
        "phase": stage.phase,
        "stage": stage.name,
        "model": summary.model_id,
        "backend": summary.backend,
        "arrivals": stage.load.arrivals,
        "request_rate_rps": stage.load.request_rate,
        "max_concurrency": stage.load.max_concurrency,
        "attempted": stage.attempted,
        "completed": stage.completed,
        "failed": stage.failed,
        "duration_s": stage.duration_s,
        "scheduled_rate_rps": stage.scheduled_rate,
        "achieved_rate_rps": stage.achieved_rate,
        "request_throughput_rps": stage.request_throughput,
        "request_goodput_rps": stage.request_goodput,
        "output_throughput_tps": stage.output_throughput,
        "total_token_throughput_tps": stage.total_token_throughput,
        "total_input_tokens": stage.total_input_tokens,
        "total_output_tokens": stage.total_output_tokens,
        **_ledger(stage),
        "concurrency_mean": stage.concurrency_mean,
        "concurrency_peak": stage.concurrency_peak,
        **_latencies(stage),
        **_cost(stage),
        "doubts": " ".join(doubt.kind.value for doubt in stage.doubts),
    }


def _ledger(stage: StageSummary) -> dict[str, Cell]:
    """Who counted what, of how many answers; whose count was used; which two disagree, as in ``server/events=4.98``."""
    ledger = stage.ledger or Ledger()
    cells: dict[str, Cell] = {"tokens_from": _pairs(stage.tokens_from)}
    for name, column in ledger.columns():
        cells[f"ledger_{name}"] = column.tokens if column.answers else None
        cells[f"ledger_{name}_answers"] = column.answers or None
    differing = {f"{check.left}/{check.right}": check.ratio for check in ledger.disagreements}
    return {**cells, "ledger_text_by": ledger.text_by, "ledger_differs": _pairs(differing)}


def _pairs(values: Mapping[str, float | None]) -> str:
    return " ".join(f"{name}={'' if value is None else format(value, '.6g')}" for name, value in values.items())


def _latencies(stage: StageSummary) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for name in _LATENCIES:
        cells |= _distribution(name, getattr(stage, name))
    return cells


def _distribution(name: str, distribution: Distribution) -> dict[str, Cell]:
    percentiles = {f"{name}_p{p}_ms": distribution.percentiles.get(f"p{p}") for p in PERCENTILES}
    return {f"{name}_mean_ms": distribution.mean, **percentiles}


def _cost(stage: StageSummary) -> dict[str, Cell]:
    cost, energy = stage.cost, stage.energy
    ends = cost.per_million_output_interval if cost else None
    return {
        "price_per_hour": cost.price_per_hour if cost else None,
        "price_per_1m_input_tokens": cost.per_million_input if cost else None,
        "price_per_1m_output_tokens": cost.per_million_output if cost else None,
        "price_per_1m_output_tokens_low": ends.low if ends else None,
        "price_per_1m_output_tokens_high": ends.high if ends else None,
        "price_per_1m_good_output_tokens": cost.per_million_good_output if cost else None,
        "price_per_request": cost.per_request if cost else None,
        "price_per_request_elsewhere": cost.elsewhere_per_request if cost else None,
        "times_cheaper_than_elsewhere": cost.times_cheaper if cost else None,
        "power_per_1m_output_tokens": cost.power_per_million_output if cost else None,
        "gpus_in_use": energy.gpus if energy else None,
        "gpu_watts_mean": energy.mean_watts if energy else None,
        "gpu_joules": energy.joules if energy else None,
        "gpu_joules_per_output_token": energy.per_output_token_j if energy else None,
        "gpu_joules_per_request": energy.per_request_j if energy else None,
        "cpu_joules": energy.cpu_joules if energy else None,
    }


def _agent(agent: AgentSide | None) -> dict[str, Cell]:
    """What an agent made of its tasks: counts, then the mean and percentiles of a task; times in ms.

    There are no such columns where no stage asked one.
    """
    cells: dict[str, Cell] = {name: getattr(agent, name, None) for name in _AGENT_COUNTS}
    for name, is_time in MEASURED.items():
        unit, told = "_ms" if is_time else "", getattr(agent, name, None) or Distribution(n=None)
        cells |= {f"{name}_mean{unit}": told.mean}
        cells |= {f"{name}_p{p}{unit}": told.percentiles.get(f"p{p}") for p in _AGENT_PERCENTILES}
    return {f"agent_{name}": value for name, value in cells.items()}


def _cell(value: Cell) -> Cell:
    if not isinstance(value, str):
        return value
    return f"'{plain(value)}" if value.startswith(_FORMULA_STARTS) else plain(value)
