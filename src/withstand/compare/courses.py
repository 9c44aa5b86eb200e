"""What a run's records say over time: per metric one value a request, in the order of their sends.

Bounded memory: some numbers a request, whatever its answer's length; of the gaps between events a thinned pool. It
turns them into estimates; what is compared with what is no business of its.
"""

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from withstand.compare.estimate import Estimate, of_mean, of_pooled_quantile, of_quantiles, of_ratio
from withstand.compare.run import Schedule
from withstand.metrics.flow import BIN_NS, Flow
from withstand.metrics.latency import NS_PER_MS, Timing, with_timing
from withstand.metrics.summary import Distribution, StageSummary
from withstand.record import Record

TIMES = ("ttft", "tpot", "e2el", "response")
SHARES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_POOL_MAX = 1 << 19
_RANKS = 33
_UNKNOWN = math.nan


class Courses:
    """One run, folded record by record. The summary of the same records tells the values whose sureness is asked."""

    def __init__(self, summary: StageSummary) -> None:
        self._summary = summary
        self._flow = Flow()
        self._at = array("q")
        self._good = array("b")
        self._times = {name: array("d") for name in TIMES}
        self._gap_sums, self._gap_counts = array("d"), array("d")
        self._gaps_above = {name: array("d") for name in SHARES}
        self._pool = _Pool()

    @classmethod
    def of(cls, records: Iterable[Record], summary: StageSummary) -> "Courses":
        """All of a run."""
        courses = cls(summary)
        for record, timing in with_timing(records):
            courses.add(record, timing)
        return courses

    def add(self, record: Record, timing: Timing | None) -> None:
        """One request, whatever became of it."""
        self._flow.add(record)
        self._at.append(_order_ns(record))
        self._good.append(timing is not None)
        values = (timing.ttft_ns, timing.tpot_ns, timing.e2el_ns, timing.response_ns) if timing else (None,) * 4
        for series, value in zip(self._times.values(), values, strict=True):
            series.append(_UNKNOWN if value is None else value / NS_PER_MS)
        self._add_gaps(timing.gaps_ns if timing else [])

    def _add_gaps(self, gaps: Sequence[int]) -> None:
        self._gap_sums.append(sum(gaps) / NS_PER_MS)
        self._gap_counts.append(len(gaps))
        for name, above in self._gaps_above.items():
            limit_ms = self._summary.itl.percentiles.get(name)
            above.append(0 if limit_ms is None else sum(map((limit_ms * NS_PER_MS).__lt__, gaps)))
        self._pool.extend(gaps)

    def estimates(self, *, rates: bool = True, gaps: bool = True) -> dict[str, Estimate]:
        """By ``metric.statistic`` and by rate; ``rates`` and ``gaps`` False where their instants are not known."""
        order = sorted(range(len(self._at)), key=self._at.__getitem__)
        found: dict[str, Estimate] = {}
        for name, series in self._times.items():
            ordered = [v for i in order if not math.isnan(v := series[i])]
            found |= _of_times(name, getattr(self._summary, name), ordered)
        if gaps:
            found |= self._of_gaps(order)
        if rates:
            found |= self._of_rates()
        return found | self._of_success(order)

    def schedule(self) -> Schedule | None:
        """Where a plan, not the answers, said when to send."""
        at = sorted(self._flow.sent)
        if len(at) < _RANKS or self._summary.load.arrivals == "inf":
            return None
        ranks = (i * (len(at) - 1) // (_RANKS - 1) for i in range(_RANKS))
        return Schedule(len(self._at), tuple(at[rank] - at[0] for rank in ranks))

    def _of_gaps(self, order: Sequence[int]) -> dict[str, Estimate]:
        itl = self._summary.itl
        answers = [i for i in order if self._gap_counts[i]]
        counts = [self._gap_counts[i] for i in answers]
        found = {}
        if itl.mean:
            found["itl.mean"] = of_ratio(itl.mean, [self._gap_sums[i] for i in answers], counts)
        pool = self._pool.sorted_ms()
        for name, share in SHARES.items():
            if value := itl.percentiles.get(name):
                above = [self._gaps_above[name][i] for i in answers]
                found[f"itl.{name}"] = of_pooled_quantile(value, share, above, counts, pool)
        return found

    def _of_rates(self) -> dict[str, Estimate]:
        """Counts in bins from the first send to the last end."""
        begin_ns, end_ns = self._flow.begin_ns, self._flow.end_ns
        if begin_ns is None or end_ns is None:
            return {}
        first, last = begin_ns // BIN_NS, end_ns // BIN_NS
        answers = [0.0] * (last - first + 1)
        for instant_ns in self._flow.completed:
            answers[instant_ns // BIN_NS - first] += 1
        tokens = [self._flow.tokens_by_bin.get(slot, 0.0) for slot in range(first, last + 1)]
        n = self._summary.completed
        found = {}
        for key, series in (("request_throughput", answers), ("output_throughput", tokens)):
            if value := getattr(self._summary, key):
                found[key] = msgspec.structs.replace(of_mean(value, series), n=n)
        return found

    def _of_success(self, order: Sequence[int]) -> dict[str, Estimate]:
        share = self._summary.success_rate
        return {"success_rate": of_mean(share, [float(self._good[i]) for i in order])} if share else {}


def _of_times(name: str, told: Distribution, ordered: Sequence[float]) -> dict[str, Estimate]:
    found = {}
    if told.mean:
        found[f"{name}.mean"] = of_mean(told.mean, ordered)
    asked = {share: value for key, share in SHARES.items() if (value := told.percentiles.get(key))}
    by_share = of_quantiles(asked, ordered) if asked and ordered else {}
    return found | {f"{name}.{key}": by_share[share] for key, share in SHARES.items() if share in by_share}


def _order_ns(record: Record) -> int:
    """Where it stands in time; requests that were never sent by when they were due."""
    known = (record.sent_ns, record.started_ns, record.ready_ns, record.scheduled_ns, record.end_ns)
    return next((at for at in known if at is not None), 0)


class _Pool:
    """The gaps of every so many-th answer: as many as fit."""

    def __init__(self) -> None:
        self._kept = array("q")
        self._stride, self._skipped = 1, 0

    def extend(self, gaps: Sequence[int]) -> None:
        self._skipped += 1
        if self._skipped < self._stride:
            return
        self._skipped = 0
        self._kept.extend(gaps)
        if len(self._kept) > _POOL_MAX:
            self._kept = self._kept[::2]
            self._stride *= 2

    def sorted_ms(self) -> list[float]:
        return [gap / NS_PER_MS for gap in sorted(self._kept)]
