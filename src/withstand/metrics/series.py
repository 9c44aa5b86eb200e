"""What a chart draws of a stage: distributions and courses over time, thinned to a bounded number of points.

A thinned distribution keeps its quantiles; a thinned scatter keeps its extremes, and one point between them. Seconds
count from the stage's first schedule or send. Only good answers have points; every request has its place in the bins.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise

import msgspec

from withstand.metrics.context import StageContext
from withstand.metrics.flow import BIN_NS, Flow
from withstand.metrics.latency import NS_PER_MS, Latencies, Timing, gap_ends, gaps_ns, with_timing
from withstand.metrics.quantiles import percentile
from withstand.metrics.rates import NS_PER_S
from withstand.metrics.sample import Sample
from withstand.record import Record

_QUANTILES_MAX = 200
_POINTS_MAX = 1500
_BINS_MAX = 240


class Ecdf(msgspec.Struct, frozen=True):
    """Values at evenly spaced shares (both ends included): ``value_ms[i]`` is the quantile ``share[i]``."""

    share: list[float]
    value_ms: list[float]


class Scatter(msgspec.Struct, frozen=True):
    """One point a request (or a gap): seconds since the stage's start, ms."""

    at_s: list[float]
    value_ms: list[float]


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


class _Points:
    """Instants and values, side by side."""

    def __init__(self) -> None:
        self.at_ns = array("q")
        self.value = array("d")

    def add(self, at_ns: int | None, value: float | None) -> None:
        if at_ns is not None and value is not None:
            self.at_ns.append(at_ns)
            self.value.append(value)

    def scatter(self, origin_ns: int) -> Scatter:
        points = _thinned(sorted(zip(self.at_ns, self.value, strict=True)))
        return Scatter(
            at_s=[(at_ns - origin_ns) / NS_PER_S for at_ns, _ in points],
            value_ms=[value / NS_PER_MS for _, value in points],
        )


def _thinned(points: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Of each of 500 stretches the lowest, the highest and the middle point."""
    if len(points) <= _POINTS_MAX:
        return points
    stretches = _POINTS_MAX // 3
    edges = [len(points) * i // stretches for i in range(stretches + 1)]
    return [point for low, high in pairwise(edges) for point in _three_of(points[low:high])]


def _three_of(stretch: list[tuple[int, float]]) -> list[tuple[int, float]]:
    values = [value for _, value in stretch]
    places = {values.index(min(values)), values.index(max(values)), len(values) // 2}
    return [stretch[place] for place in sorted(places)]


class _Scatters:
    """The points of each metric; of an answer's gaps only three, for they are too many."""

    def __init__(self) -> None:
        self.by_name = {name: _Points() for name in ("ttft", "tpot", "itl", "e2el", "response")}

    def add(self, record: Record, timing: Timing) -> None:
        points = self.by_name
        points["ttft"].add(record.sent_ns, timing.ttft_ns)
        points["tpot"].add(record.sent_ns, timing.tpot_ns)
        points["e2el"].add(record.sent_ns, timing.e2el_ns)
        points["response"].add(record.scheduled_ns, timing.response_ns)
        if gaps := gaps_ns(record):
            self._add_gaps(record, gaps)

    def _add_gaps(self, record: Record, gaps: list[int]) -> None:
        """A gap's instant is its end, found by the event that ends it."""
        ends = gap_ends(record)
        for place in sorted({gaps.index(min(gaps)), gaps.index(max(gaps)), len(gaps) // 2}):
            self.by_name["itl"].add(record.chunk_ns[ends[place]], gaps[place])


def stage_series(records: Iterable[Record], context: StageContext) -> StageSeries:
    """The charts of one stage, from its records."""
    latencies, flow, scatters = Latencies(), Flow(), _Scatters()
    for record, timing in with_timing(records):
        latencies.add(record, timing)
        flow.add(record)
        if timing is not None:
            scatters.add(record, timing)
    origin_ns = min([*flow.scheduled, *flow.sent], default=0)
    return StageSeries(
        name=context.stage.name,
        ecdf={name: _ecdf(sample) for name, sample in latencies.by_name().items() if len(sample)},
        scatter={name: points.scatter(origin_ns) for name, points in scatters.by_name.items() if points.at_ns},
        bins=_bins(flow, origin_ns),
    )


def distribution_series(name: str, samples: Mapping[str, Sample]) -> StageSeries:
    """Distributions alone, for a stage whose course over time is not known."""
    return StageSeries(name=name, ecdf={metric: _ecdf(sample) for metric, sample in samples.items() if len(sample)})


def _ecdf(sample: Sample) -> Ecdf:
    steps = min(_QUANTILES_MAX, max(2, len(sample))) - 1
    shares = [i / steps for i in range(steps + 1)]
    return Ecdf(share=shares, value_ms=[percentile(sample, share) / NS_PER_MS for share in shares])


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
    return _differences([0, *(round(total) for total in accumulate(shares))])


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
