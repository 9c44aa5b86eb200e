"""The times that were promised, load by load: the percentile that is promised, and between which bounds it lies.

Its bounds are order statistics, with as many requests as are independent of each other: those of the probe's shares.
"""

from collections.abc import Sequence

from withstand.control.probe import Look, Told
from withstand.metrics.latency import NS_PER_MS, Latencies
from withstand.metrics.quantiles import interval_ranks, percentile
from withstand.metrics.sample import Sample
from withstand.spec import Promise


def promised_times(latencies: Latencies, look: Look, promises: Sequence[Promise]) -> tuple[Told | None, ...]:
    """Of a load's good answers; None where no time is promised, or none was seen."""
    return tuple(_told(latencies, look, which, promise) for which, promise in enumerate(promises))


def _told(latencies: Latencies, look: Look, which: int, promise: Promise) -> Told | None:
    share = look.share(which)
    sample = None if promise.limit is None else _sample(latencies, promise.metric)
    if sample is None or not len(sample) or share is None:
        return None
    worth = max(1, min(len(sample), round(share.of)))
    low, high = interval_ranks(worth, promise.share)
    return Told(_at(sample, promise.share), _ranked(sample, low, worth), _ranked(sample, high, worth))


def _sample(latencies: Latencies, metric: str) -> Sample:
    """Without a schedule the response time is that from the send."""
    sample: Sample = getattr(latencies, metric)
    return latencies.e2el if metric == "response" and not len(sample) else sample


def _ranked(sample: Sample, rank: int | None, worth: int) -> float | None:
    """Of so many that would be independent, the one of this rank."""
    return None if rank is None else _at(sample, (rank + 0.5) / worth)


def _at(sample: Sample, share: float) -> float:
    return percentile(sample, share) / NS_PER_MS
