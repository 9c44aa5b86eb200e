"""A stage as it goes on: records are added as they come, a look tells how it stands. It knows no clock and no files.

Memory is bounded: seconds in bins, values in sketches, one text a way to fail. What there is no time to read is only
counted; rates are then of all requests, latencies of a sample.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec

from withstand.metrics.context import StageContext
from withstand.metrics.doubts import Doubt
from withstand.metrics.evidence import Evidence
from withstand.metrics.latency import NS_PER_MS, Timing, timing_if_good
from withstand.metrics.live.bins import NS_PER_S, Bin, Over, Recent, Whole
from withstand.metrics.live.sketch import Sketch, bucket_of
from withstand.metrics.live.snapshot import METRICS, Current, ErrorNow, GoodNow, LatencyNow, Pace, Quantiles
from withstand.metrics.rates import has_limits, is_good
from withstand.metrics.rules import outcome
from withstand.metrics.rules.case import Case
from withstand.metrics.summary import Distribution, Load, StageSummary
from withstand.metrics.tally import in_one_line
from withstand.record import Record, Status
from withstand.spec import Slo, Stage, rate_rps_of

_ROLLING_S = 10
_BINS_MAX = 240
_GAPS_MAX = 16
"""Of one answer: neighbours are much alike, and long answers shall not cost more than short ones."""
_TOKENS_MAX = 10**9
"""An answer that claims more shall not spoil a sum."""
_SHARES = (0.5, 0.95, 0.99)
_RULES = (outcome.requests_failed, outcome.rate_limited)
"""Those that need nothing but counts."""
_UNSEEN = Distribution(n=0)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What only the process that runs knows, exactly."""

    elapsed_s: float
    sent: int
    done: int
    failed: int
    in_flight: int
    output_tokens: int


class LiveStage:
    """One stage. Instants are ns since the run's epoch."""

    def __init__(self, index: int, stage: Stage, slo: Slo, started_ns: int, *, since: str = "stage") -> None:
        self.index = index
        self.done_before = 0
        """Requests that were over before somebody looked."""
        self._stage = stage
        self._unfinished = msgspec.structs.replace(stage, num_prompts=None)
        """Nothing is missing of it yet."""
        self._slo = slo
        self._since = since
        self._started_ns = started_ns
        self._recent = Recent(_ROLLING_S)
        self._whole = Whole(_BINS_MAX)
        self._total = Bin()
        self._statuses: Counter[str] = Counter()
        self._texts: dict[str, str] = {}
        self._told: list[Told] = []

    def add(self, record: Record, now_ns: int) -> None:
        """One request that is over; ``now_ns`` where its end is not known, or lies in the future."""
        over_ns = min(record.end_ns or now_ns, now_ns)
        timing = timing_if_good(record)
        if not self._statuses and self._since == "stage":
            self._begin(record, now_ns)
        self._statuses[record.status.value] += 1
        if timing is None and record.error:
            self._texts.setdefault(record.status.value, in_one_line(record.error))
        self._put(self._over(record, timing), over_ns)

    def _begin(self, record: Record, now_ns: int) -> None:
        """The workers began later than the stage was written down; the first to end was among the first to be sent."""
        first_ns = record.ready_ns or record.sent_ns
        if first_ns is not None and not self._told:
            self._started_ns = max(self._started_ns, min(first_ns, now_ns))

    def add_unread(self, ended: int, failed: int, over_ns: int) -> None:
        """Requests that were over about then, and that nobody had the time to read."""
        if ended or failed:
            self._put(Over(unread_ended=ended, unread_failed=failed), over_ns)

    def _put(self, over: Over, instant_ns: int) -> None:
        for kept in (self._total, self._recent.at(instant_ns), self._whole.at(instant_ns - self._started_ns)):
            kept.put(over)

    def _over(self, record: Record, timing: Timing | None) -> Over:
        if timing is None:
            return Over(failed=1)
        gaps = timing.gaps_ns
        return Over(
            ended=1,
            good=int(is_good(record, timing, self._slo)),
            output_tokens=min(record.output_tokens or 0, _TOKENS_MAX),
            buckets=(
                ("ttft", _buckets(timing.ttft_ns)),
                ("tpot", _buckets(timing.tpot_ns)),
                ("itl", _buckets(*gaps[:: -(-len(gaps) // _GAPS_MAX) or 1])),
                ("e2el", _buckets(timing.e2el_ns)),
            ),
        )

    def tell(self, told: Told) -> None:
        """What the process that runs knows: it goes before what records tell."""
        recent = [one for one in self._told if one.elapsed_s >= told.elapsed_s - _ROLLING_S]
        self._told = [*recent[-_BINS_MAX:], told]

    def current(self, now_ns: int) -> Current:
        """How it stands."""
        recent, whole = self._recent.within(now_ns), self._total
        length_s = max(self._recent.length_s(now_ns, self._started_ns), 1e-3)
        told = self._told[-1] if self._told else None
        since_s = max(0.0, (now_ns - self._started_ns) / NS_PER_S)
        return Current(
            index=self.index,
            name=self._stage.name,
            elapsed_s=told.elapsed_s if told else since_s,
            rate_asked=rate_rps_of(self._stage.arrivals),
            rate_sent=self._told_rate("sent"),
            rate_ended=recent.all_ended / length_s,
            output_tokens_per_s=_known(self._told_rate("output_tokens"), recent.all_tokens / length_s),
            in_flight=told.in_flight if told else None,
            done=told.done if told else self.done_before + whole.all_ended + whole.all_failed,
            failed=told.failed if told else whole.all_failed,
            errors=self._errors(),
            latencies=self._latencies(recent, whole),
            pace=self._pace(),
            good=GoodNow(recent.good_share, whole.good_share) if has_limits(self._slo) else None,
            doubts=self._doubts(whole),
            since=self._since,
            sampled=_sampled(whole),
        )

    def _told_rate(self, name: str) -> float | None:
        """By the counts that were told over the last seconds; None before there are two."""
        if len(self._told) < 2 or self._told[-1].elapsed_s <= self._told[0].elapsed_s:
            return None
        first, last = self._told[0], self._told[-1]
        gained: int = getattr(last, name) - getattr(first, name)
        return gained / (last.elapsed_s - first.elapsed_s)

    def _errors(self) -> tuple[ErrorNow, ...]:
        failed = [(status, n) for status, n in self._statuses.most_common() if status != Status.OK.value]
        return tuple(ErrorNow(status, n, self._texts.get(status)) for status, n in failed)

    def _latencies(self, recent: Bin, whole: Bin) -> dict[str, LatencyNow]:
        return {
            name: LatencyNow(
                rolling=_quantiles(recent.sketches[name]),
                whole=_quantiles(whole.sketches[name]),
                course=tuple(_ms(kept.sketches[name].median()) for kept in self._whole.bins),
            )
            for name in METRICS
        }

    def _pace(self) -> Pace:
        width_s = self._whole.width_ns / NS_PER_S
        bins = self._whole.bins
        return Pace(
            width_s=width_s,
            start_s=0.0,
            ended=tuple(kept.all_ended / width_s for kept in bins),
            failed=tuple(kept.all_failed / width_s for kept in bins),
            output_tokens=tuple(kept.all_tokens / width_s for kept in bins),
        )

    def _doubts(self, whole: Bin) -> tuple[Doubt, ...]:
        """By the judge's own rules."""
        statuses: Mapping[str, int] = self._statuses
        case = Case(
            summary=StageSummary(
                name=self._stage.name,
                load=Load(),
                attempted=sum(statuses.values()),
                completed=whole.ended,
                failed=whole.failed,
                statuses=dict(statuses),
                errors_by_status={s: {self._texts[s]: n} for s, n in statuses.items() if s in self._texts},
                ttft=_UNSEEN,
                tpot=_UNSEEN,
                itl=_UNSEEN,
                e2el=_UNSEEN,
                response=_UNSEEN,
                ttft_scheduled=_UNSEEN,
                lateness=_UNSEEN,
            ),
            evidence=Evidence(),
            context=StageContext(stage=self._unfinished, goodput=self._slo, cut_at_once=True),
        )
        return tuple(doubt for rule in _RULES if (doubt := rule(case)))


def _buckets(*values_ns: float | None) -> list[int]:
    """What is unknown is left out."""
    return [bucket_of(value_ns) for value_ns in values_ns if value_ns is not None]


def _quantiles(sketch: Sketch) -> Quantiles:
    p50, p95, p99 = sketch.quantiles(_SHARES)
    return Quantiles(n=sketch.n, p50=_ms(p50), p95=_ms(p95), p99=_ms(p99), mean=_ms(sketch.mean()))


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / NS_PER_MS


def _known(exact: float | None, otherwise: float) -> float:
    return otherwise if exact is None else exact


def _sampled(whole: Bin) -> float | None:
    read, unread = whole.ended + whole.failed, whole.unread_ended + whole.unread_failed
    return read / (read + unread) if unread else None
