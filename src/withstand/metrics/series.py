"""What a chart draws of a stage: distributions and courses over time, thinned to a bounded number of points.

A thinned distribution keeps its quantiles. Seconds count from the stage's first schedule or send. Only good answers
have points; every request has its place in the bins.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, pairwise

import msgspec

from withstand.metrics.context import StageContext
from withstand.metrics.flow import BIN_NS, Flow
from withstand.metrics.fold import Besides, StageFold, fold_of
from withstand.metrics.latency import NS_PER_MS
from withstand.metrics.quantiles import percentile
from withstand.metrics.rates import NS_PER_S
from withstand.metrics.sample import Sample
from withstand.metrics.scatter import Scatter
from withstand.metrics.server import Course, server_courses
from withstand.record import Record

_QUANTILES_MAX = 200
_BINS_MAX = 240
_DIGITS = 6
"""Of shares of tokens: beyond, a sum depends on the order of adding, and half a token would be rounded either way."""


class Ecdf(msgspec.Struct, frozen=True):
    """Values at evenly spaced shares (both ends included): ``value_ms[i]`` is the quantile ``share[i]``."""

    share: list[float]
    value_ms: list[float]
    count: int
    """Of all values: the smallest is already as large as 1 / ``count`` of them."""


class Bins(msgspec.Struct, frozen=True):
    """Counts by time; every list is as long as ``start_s``, whose steps are ``width_s``."""

    width_s: float
    start_s: list[float]
    scheduled: list[int | None]
    sent: list[int]
    completed: list[int]
    failed: list[int]
    output_tokens: list[int]
    concurrency: list[float]


class StageSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The charts of one stage. Keys of the dicts are names of the catalogue: ttft, tpot, itl, e2el, response."""

    name: str
    ecdf: dict[str, Ecdf] = {}
    scatter: dict[str, Scatter] = {}
    bins: Bins | None = None
    server: dict[str, Course] = {}
    """Of the server's side, by the names of its levels."""


def stage_series(records: Iterable[Record], context: StageContext) -> StageSeries:
    """The charts of one stage, from its records."""
    return fold_series(fold_of(records, context.goodput, Besides(charts=True)), context)


def fold_series(fold: StageFold, context: StageContext) -> StageSeries:
    """The same of records that have been folded, their charts with them."""
    assert fold.scatters is not None
    origin_ns = min(chain(fold.flow.scheduled, fold.flow.sent), default=0)
    return StageSeries(
        name=context.stage.name,
        ecdf={name: _ecdf(sample) for name, sample in fold.latencies.by_name().items() if len(sample)},
        scatter=fold.scatters.series(origin_ns),
        bins=_bins(fold.flow, origin_ns),
        server=server_courses(context.watched, origin_ns) if context.watched else {},
    )


def distribution_series(name: str, samples: Mapping[str, Sample]) -> StageSeries:
    """Distributions alone, for a stage whose course over time is not known."""
    return StageSeries(name=name, ecdf={metric: _ecdf(sample) for metric, sample in samples.items() if len(sample)})


def _ecdf(sample: Sample) -> Ecdf:
    steps = min(_QUANTILES_MAX, max(2, len(sample))) - 1
    shares = [i / steps for i in range(steps + 1)]
    return Ecdf(share=shares, value_ms=[percentile(sample, share) / NS_PER_MS for share in shares], count=len(sample))


def _bins(flow: Flow, origin_ns: int) -> Bins | None:
    """Widths are whole multiples of the 100 ms in which tokens were counted."""
    end_ns = max([*flow.left, *flow.completed, *flow.failed], default=None)
    if end_ns is None:
        return None
    first = origin_ns // BIN_NS
    slots = end_ns // BIN_NS + 1 - first
    width = -(-slots // _BINS_MAX)
    edges = [(first + i * width) * BIN_NS for i in range(-(-slots // width) + 1)]
    return Bins(
        width_s=width * BIN_NS / NS_PER_S,
        start_s=[(edge - origin_ns) / NS_PER_S for edge in edges[:-1]],
        scheduled=[*_counts(flow.scheduled, edges)] if flow.scheduled else [None] * (len(edges) - 1),
        sent=_counts(flow.sent, edges),
        completed=_counts(flow.completed, edges),
        failed=_counts(flow.failed, edges),
        output_tokens=_tokens(flow, first, width, len(edges) - 1),
        concurrency=_concurrency(flow, edges),
    )


def _counts(instants_ns: Sequence[int], edges: list[int]) -> list[int]:
    ordered = sorted(instants_ns)
    before = [bisect_left(ordered, edge) for edge in edges]
    return _differences(before)


def _differences(running: list[int]) -> list[int]:
    return [after - before for before, after in pairwise(running)]


def _tokens(flow: Flow, first: int, width: int, count: int) -> list[int]:
    """Shares of tokens are rounded on the running total, so that the bins' sum is the stage's."""
    shares = [0.0] * count
    for slot, tokens in flow.tokens_by_bin.items():
        shares[max(0, slot - first) // width] += tokens
    return _differences([0, *(round(round(total, _DIGITS)) for total in accumulate(shares))])


def _concurrency(flow: Flow, edges: list[int]) -> list[float]:
    """The mean in each bin: the growth of (time spent by all requests so far) over the bin / its width."""
    spent = [a - b for a, b in zip(_time_since(flow.sent, edges), _time_since(flow.left, edges), strict=True)]
    return [gained / (edges[1] - edges[0]) for gained in _differences(spent)]


def _time_since(instants_ns: Sequence[int], edges: list[int]) -> list[int]:
    """Per edge, the sum over all instants before it of the time that has passed since."""
    ordered = sorted(instants_ns)
    running = [0, *accumulate(ordered)]
    counts = [bisect_right(ordered, edge) for edge in edges]
    return [count * edge - running[count] for count, edge in zip(counts, edges, strict=True)]
