"""How sure the numbers of one run are, from its requests over time: estimates of what its summary tells.

What is compared with what is no business of its.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from withstand.compare.estimate import TOO_FEW, Estimate, of_mean, of_pooled_quantile, of_quantiles, of_ratio, unsure
from withstand.compare.run import Schedule
from withstand.metrics.agents import SUCCESS
from withstand.metrics.catalogue import AGENT
from withstand.metrics.courses import Courses
from withstand.metrics.flow import BIN_NS, Flow
from withstand.metrics.fold import StageFold
from withstand.metrics.latency import NS_PER_MS
from withstand.metrics.quantiles import TELLING, percentile
from withstand.metrics.sample import Sample
from withstand.metrics.summary import AgentSide, Distribution, StageSummary

SHARES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_RANKS = 33


def estimates_of(
    fold: StageFold, summary: StageSummary, *, rates: bool = True, gaps: bool = True
) -> dict[str, Estimate]:
    """By ``metric.statistic`` and by rate; ``summary`` is that of the same records, and the fold has its courses.

    ``rates`` and ``gaps`` are False where their instants are not known.
    """
    courses = _courses(fold)
    order = courses.order()
    found: dict[str, Estimate] = {}
    for name, series in courses.series(order).items():
        found |= _of_times(name, getattr(summary, name), series)
    if gaps:
        found |= _of_gaps(courses, order, fold.latencies.itl, summary.itl)
    if rates:
        found |= rates_of(fold.flow, summary)
    return found | _of_success(courses, order, summary) | _of_agent(courses, summary.agent)


def schedule_of(fold: StageFold, summary: StageSummary) -> Schedule | None:
    """Where a plan, not the answers, said when to send."""
    at = sorted(fold.flow.sent)
    if len(at) < _RANKS or summary.load.arrivals == "inf":
        return None
    ranks = (i * (len(at) - 1) // (_RANKS - 1) for i in range(_RANKS))
    return Schedule(len(_courses(fold)), tuple(at[rank] - at[0] for rank in ranks))


def _courses(fold: StageFold) -> Courses:
    assert fold.courses is not None
    return fold.courses


def _of_times(name: str, told: Distribution, ordered: Sequence[float]) -> dict[str, Estimate]:
    found = {}
    if told.mean:
        found[f"{name}.mean"] = of_mean(told.mean, ordered)
    asked = {share: value for key, share in SHARES.items() if (value := told.percentiles.get(key))}
    by_share = of_quantiles(asked, ordered) if asked and ordered else {}
    return found | {f"{name}.{key}": by_share[share] for key, share in SHARES.items() if share in by_share}


def _of_gaps(courses: Courses, order: Sequence[int], itl: Sample, told: Distribution) -> dict[str, Estimate]:
    """An answer is one draw of several gaps."""
    answers = [place for place in order if courses.gap_counts[place]]
    counts = [float(courses.gap_counts[place]) for place in answers]
    found = {}
    if told.mean:
        found["itl.mean"] = of_ratio(told.mean, [courses.gap_sums_ms[place] for place in answers], counts)
    limits_ms = {name: value for name in SHARES if (value := told.percentiles.get(name))} if answers else {}
    for name, above in courses.gaps_above(limits_ms).items():
        over = [float(above[place]) for place in answers]
        found[f"itl.{name}"] = of_pooled_quantile(limits_ms[name], SHARES[name], over, counts, _reader(itl))
    return found


def _reader(gaps: Sample) -> Callable[[float], float]:
    return lambda share: percentile(gaps, share) / NS_PER_MS


def rates_of(flow: Flow, summary: StageSummary) -> dict[str, Estimate]:
    """Counts in bins from the first send to the last end."""
    begin_ns, end_ns = flow.begin_ns, flow.end_ns
    if begin_ns is None or end_ns is None:
        return {}
    first, last = begin_ns // BIN_NS, end_ns // BIN_NS
    answers = [0.0] * (last - first + 1)
    for instant_ns in flow.completed:
        answers[instant_ns // BIN_NS - first] += 1
    tokens = [flow.tokens_by_bin.get(slot, 0.0) for slot in range(first, last + 1)]
    found = {}
    for key, series in (("request_throughput", answers), ("output_throughput", tokens)):
        if value := getattr(summary, key):
            sure = of_mean(value, series) if summary.completed >= TELLING else unsure(value, None, TOO_FEW)
            found[key] = msgspec.structs.replace(sure, n=summary.completed)
    return found


def _of_success(courses: Courses, order: Sequence[int], summary: StageSummary) -> dict[str, Estimate]:
    share = summary.success_rate
    return {"success_rate": of_mean(share, [float(courses.good[place]) for place in order])} if share else {}


def _of_agent(courses: Courses, agent: AgentSide | None) -> dict[str, Estimate]:
    """A task that failed is one that was not solved."""
    found: dict[str, Estimate] = {}
    for name, series in (courses.agents.series() if agent else {}).items():
        key = f"{AGENT}{name}"
        told = getattr(agent, name)
        found |= _of_times(key, told, series) if isinstance(told, Distribution) else {}
        if name == SUCCESS and told:
            found[key] = of_mean(told, series)
    return found
