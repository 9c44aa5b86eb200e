"""A stage's fold → its summary: all numbers are read off, then judged.

Warm-up stages are the caller's to leave out.
"""

from collections.abc import Iterable

import msgspec

from withstand.metrics import rates
from withstand.metrics.backlog import growth_in
from withstand.metrics.client_error import client_error
from withstand.metrics.context import StageContext
from withstand.metrics.doubts import Doubt
from withstand.metrics.energy import Energy, Work, energy_of
from withstand.metrics.flow import Flow
from withstand.metrics.fold import StageFold, fold_of
from withstand.metrics.judge import stage_doubts
from withstand.metrics.latency import NS_PER_MS, Latencies
from withstand.metrics.layers import layers_of
from withstand.metrics.quantiles import distribution
from withstand.metrics.server import Watched, server_side
from withstand.metrics.summary import Load, StageSummary, Summary
from withstand.metrics.tally import Tally, by_status, by_text, commonest, plus
from withstand.metrics.window import steady_window
from withstand.record import Record
from withstand.spec import Gamma, Inf, Poisson, Stage, rate_rps_of

_ERRORS_SHOWN = 10


def summarize_stage(records: Iterable[Record], context: StageContext) -> StageSummary:
    """Everything that a stage's records say, with the doubts about it."""
    return stage_summary(fold_of(records, context.goodput), context)


def stage_summary(fold: StageFold, context: StageContext) -> StageSummary:
    """The same of records that have been folded."""
    server = server_side(context.watched) if context.watched else None
    summary = msgspec.structs.replace(
        _summary(fold.tally, fold.latencies, fold.flow, context),
        client_error=client_error(fold.latencies, fold.ranges, context),
        health=context.health,
        server=server,
        agent=fold.agents.side(),
        layers=layers_of(fold.layers, server, fold.tally.attempted),
        energy=_energy(fold, context.watched),
        ledger=fold.accounts.ledger(text_by=context.tokenizer, text_exact=context.tokenizer_exact),
    )
    doubts = stage_doubts(summary, fold.evidence, context, growth_in(fold.flow))
    return msgspec.structs.replace(summary, doubts=doubts)


def _energy(fold: StageFold, watched: Watched | None) -> Energy | None:
    begin_ns, end_ns = fold.flow.begin_ns, fold.flow.end_ns
    if watched is None or begin_ns is None or end_ns is None or begin_ns == end_ns:
        return None
    work = Work((begin_ns, end_ns), fold.tally.output_tokens, fold.tally.completed)
    return energy_of(watched.samples, work, beside_server=watched.beside_server)


def _summary(tally: Tally, latencies: Latencies, flow: Flow, context: StageContext) -> StageSummary:
    stage, duration_s = context.stage, rates.duration_s(flow)
    is_open = not isinstance(stage.arrivals, Inf)
    seconds = None if is_open and tally.attempted == 1 else duration_s  # one arrival makes no rate
    total_tokens = plus(tally.input_tokens, tally.output_tokens)
    good = tally.good if rates.has_limits(context.goodput) else None
    return StageSummary(
        name=stage.name,
        phase=stage.phase,
        load=_load(context),
        attempted=tally.attempted,
        completed=tally.completed,
        failed=tally.attempted - tally.completed,
        statuses=commonest(tally.statuses),
        errors=commonest(by_text(tally.errors), _ERRORS_SHOWN),
        errors_by_status=by_status(tally.errors, _ERRORS_SHOWN),
        success_rate=tally.completed / tally.attempted if tally.attempted else None,
        ended_by=context.ended_by,
        cut_short=context.cut_short,
        duration_s=duration_s,
        scheduled_rate=rates.rate_of(flow.scheduled) if is_open else None,
        achieved_rate=rates.rate_of(flow.sent) if is_open else None,
        request_throughput=rates.per_second(tally.completed, seconds),
        request_goodput=rates.per_second(good, seconds),
        output_throughput=rates.per_second(tally.output_tokens, seconds),
        output_goodput=None if good is None else rates.per_second(tally.good_output_tokens, seconds),
        total_token_throughput=rates.per_second(total_tokens, seconds),
        total_input_tokens=tally.input_tokens,
        total_output_tokens=tally.output_tokens,
        tokens_from=commonest(tally.tokens_from),
        output_events=latencies.output_events,
        shared_stamps=latencies.shared_stamps,
        unsure_gaps=latencies.unsure_gaps,
        concurrency_mean=rates.concurrency_mean(flow),
        concurrency_peak=rates.concurrency_peak(flow),
        output_throughput_peak=_peak(rates.tokens_peak(flow), rates.per_second(tally.output_tokens, seconds)),
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
        finish_reasons=commonest(tally.finish_reasons),
    )


def _peak(best_second: float | None, mean: float | None) -> float | None:
    """None where the stage holds no whole second that tells: no peak is below the mean."""
    return None if best_second is None or mean is None or best_second < mean else best_second


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
