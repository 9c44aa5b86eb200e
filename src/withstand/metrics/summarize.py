"""Records → a stage's summary, in one pass: each fold takes the record, then its numbers are read off.

Warm-up stages are the caller's to leave out.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from withstand.metrics import rates
from withstand.metrics.client_error import client_error
from withstand.metrics.context import StageContext
from withstand.metrics.doubts import Doubt
from withstand.metrics.evidence import Evidence
from withstand.metrics.flow import Flow
from withstand.metrics.judge import stage_doubts
from withstand.metrics.latency import NS_PER_MS, Latencies, Timing, with_timing
from withstand.metrics.ledger import Accounts
from withstand.metrics.quantiles import distribution
from withstand.metrics.ranges import Ranges
from withstand.metrics.summary import Load, StageSummary, Summary
from withstand.metrics.window import steady_window
from withstand.record import Record
from withstand.spec import Gamma, Inf, Poisson, Slo, Stage, rate_rps_of

_ERRORS_SHOWN = 10
_ERROR_LENGTH = 200


class _Tally:
    """Counts: outcomes, tokens, who counted them, how many were good by the limits."""

    def __init__(self, slo: Slo) -> None:
        self._slo = slo
        self.attempted = self.completed = self.good = 0
        self.input_tokens: int | None = 0
        self.output_tokens: int | None = 0
        self.statuses: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.tokens_from: Counter[str] = Counter()
        self.finish_reasons: Counter[str] = Counter()

    def add(self, record: Record, timing: Timing | None) -> None:
        self.attempted += 1
        self.statuses[record.status.value] += 1
        if timing is not None:
            self._add_answer(record, timing)
        elif record.error:
            self.errors[_in_one_line(record.error)] += 1

    def _add_answer(self, record: Record, timing: Timing) -> None:
        self.completed += 1
        self.good += rates.is_good(record, timing, self._slo)
        self.input_tokens = _plus(self.input_tokens, record.prompt_tokens)
        self.output_tokens = _plus(self.output_tokens, record.output_tokens)
        if record.tokens_from is not None:
            self.tokens_from[record.tokens_from.value] += 1
        if record.finish_reason is not None:
            self.finish_reasons[record.finish_reason] += 1


def _in_one_line(text: str) -> str:
    """The last line: in a traceback, which foreign files may hold, it is the one that says what happened."""
    return text.strip().rpartition("\n")[2][:_ERROR_LENGTH]


def _plus(total: int | None, tokens: int | None) -> int | None:
    """A sum with an unknown part is unknown: a part of it would pass for the whole."""
    return None if total is None or tokens is None else total + tokens


def summarize_stage(records: Iterable[Record], context: StageContext) -> StageSummary:
    """Everything that a stage's records say, with the doubts about it."""
    tally, latencies, flow = _Tally(context.goodput), Latencies(), Flow()
    evidence, ranges, accounts = Evidence(), Ranges(), Accounts()
    for record, timing in with_timing(records):
        tally.add(record, timing)
        latencies.add(record, timing)
        flow.add(record)
        evidence.add(record, timing)
        ranges.add(record, timing)
        accounts.add(record)
    summary = msgspec.structs.replace(
        _summary(tally, latencies, flow, context),
        client_error=client_error(latencies, ranges, context),
        health=context.health,
        ledger=accounts.ledger(text_by=context.tokenizer, text_exact=context.tokenizer_exact),
    )
    return msgspec.structs.replace(summary, doubts=stage_doubts(summary, evidence, context))


def _summary(tally: _Tally, latencies: Latencies, flow: Flow, context: StageContext) -> StageSummary:
    stage, seconds = context.stage, rates.duration_s(flow)
    total_tokens = _plus(tally.input_tokens, tally.output_tokens)
    good = tally.good if rates.has_limits(context.goodput) else None
    return StageSummary(
        name=stage.name,
        phase=stage.phase,
        load=_load(context),
        attempted=tally.attempted,
        completed=tally.completed,
        failed=tally.attempted - tally.completed,
        statuses=dict(tally.statuses.most_common()),
        errors=dict(tally.errors.most_common(_ERRORS_SHOWN)),
        success_rate=tally.completed / tally.attempted if tally.attempted else None,
        duration_s=seconds,
        scheduled_rate=None if isinstance(stage.arrivals, Inf) else rates.rate_of(flow.scheduled),
        achieved_rate=None if isinstance(stage.arrivals, Inf) else rates.rate_of(flow.sent),
        request_throughput=rates.per_second(tally.completed, seconds),
        request_goodput=rates.per_second(good, seconds),
        output_throughput=rates.per_second(tally.output_tokens, seconds),
        total_token_throughput=rates.per_second(total_tokens, seconds),
        total_input_tokens=tally.input_tokens,
        total_output_tokens=tally.output_tokens,
        tokens_from=dict(tally.tokens_from.most_common()),
        output_events=latencies.output_events,
        shared_stamps=latencies.shared_stamps,
        unsure_gaps=latencies.unsure_gaps,
        concurrency_mean=rates.concurrency_mean(flow),
        concurrency_peak=rates.concurrency_peak(flow),
        output_throughput_peak=rates.tokens_peak(flow),
        steady=steady_window(flow),
        ttft=distribution(latencies.ttft, NS_PER_MS),
        tpot=distribution(latencies.tpot, NS_PER_MS),
        itl=distribution(latencies.itl, NS_PER_MS, independent=False),
        itl_per_token=distribution(latencies.itl_per_token, NS_PER_MS, independent=False),
        itl_request_mean=distribution(latencies.itl_request_mean, NS_PER_MS),
        e2el=distribution(latencies.e2el, NS_PER_MS),
        response=distribution(latencies.response, NS_PER_MS),
        ttft_scheduled=distribution(latencies.ttft_scheduled, NS_PER_MS),
        lateness=distribution(latencies.lateness, NS_PER_MS),
        finish_reasons=dict(tally.finish_reasons.most_common()),
    )


def _load(context: StageContext) -> Load:
    stage = context.stage
    return Load(
        request_rate=rate_rps_of(stage.arrivals),
        arrivals=str(stage.arrivals.__struct_config__.tag),
        burstiness=_burstiness(stage),
        max_concurrency=stage.max_concurrency,
        num_prompts=stage.num_prompts,
        duration_s=stage.duration_s,
        stopped_early=context.stopped_early,
    )


def _burstiness(stage: Stage) -> float | None:
    if isinstance(stage.arrivals, Gamma):
        return stage.arrivals.burstiness
    return 1.0 if isinstance(stage.arrivals, Poisson) else None


def summarize(
    stages: Iterable[StageSummary],
    *,
    backend: str | None = None,
    model_id: str | None = None,
    target: str | None = None,
    complete: bool = True,
    doubts: Iterable[Doubt] = (),
) -> Summary:
    """A run from its stages, in their order."""
    return Summary(
        stages=tuple(stages),
        backend=backend,
        model_id=model_id,
        target=target,
        complete=complete,
        doubts=tuple(doubts),
    )
