"""What the page draws of a search for a limit: against the load, what broke each promise, and the times promised."""

from collections.abc import Sequence
from typing import Any

from withstand.control.limit import Limit
from withstand.control.probe import Probed, Told
from withstand.control.share import Share
from withstand.report.charts import short
from withstand.report.limit import UNITS
from withstand.spec.promise import spoken

_Point = list[float | int | None]
"""A value and its two ends."""


def limit_chart(limit: Limit) -> dict[str, Any]:
    """As JSON has it; of promises the page knows nothing but this."""
    probes = sorted(limit.probes, key=lambda one: one.load)
    return {
        "unit": UNITS[limit.axis],
        "load": short(limit.load),
        "low": short(limit.interval.low),
        "high": short(limit.interval.high),
        "loads": [short(one.load) for one in probes],
        "found": [one.look.standing.value for one in probes],
        "promises": [_promise(limit, probes, which) for which in range(len(limit.promises))],
    }


def _promise(limit: Limit, probes: Sequence[Probed], which: int) -> dict[str, Any]:
    promise = limit.promises[which]
    return {
        "name": str(promise),
        "time": None if promise.limit is None else f"p{100 * promise.share:g} {spoken(promise.metric)}",
        "limit": short(promise.limit),
        "allowed": short(1 - promise.share),
        "shares": [_share(one.look.share(which)) for one in probes],
        "times": [_time(one.times[which] if which < len(one.times) else None) for one in probes],
    }


def _share(share: Share | None) -> _Point | None:
    if share is None:
        return None
    interval = share.interval
    return [short(value) for value in (share.value, interval.low, interval.high)]


def _time(told: Told | None) -> _Point | None:
    return None if told is None else [short(value) for value in (told.value, told.low, told.high)]
