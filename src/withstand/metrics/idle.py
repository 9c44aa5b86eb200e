"""A machine that is always on against one that is given back when it is idle: cost of a day, and who waits. Pure.

Requests come at random (Poisson, ``l`` a second) in the busy hours of a day, and each takes ``s`` seconds however many
are served. The machine stays while any request came less than ``s + t`` seconds ago, ``t`` being the idle timeout: it
is an M/G/infinity queue with service times that are ``t`` longer. So, from Takacs (1962, ch. 3.2) with x = l (s + t):

- it is off at a random moment with probability e^-x, and stays off for 1 / l seconds on average;
- without cold starts, a request finds it off with the same probability (arrivals see time averages): the share of gaps
  that are longer than s + t;
- a cold start of ``c`` seconds is paid by who finds it off and by the l c requests that come meanwhile, and lengthens
  each stay: off with q = e^-x / (1 + l c e^-x), a share (1 + l c) q of requests pays.

A day that has a night begins with a machine that is off. Exact for equal service times; for others nearly so, since
only the stay that begins with a cold start is longer than its mean tells.
"""

from collections.abc import Sequence
from math import exp, expm1

import msgspec

HOUR_S, DAY_S = 3600.0, 86_400.0


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the machine in a day, and how it comes and goes."""

    requests: float
    busy_s: float
    service_s: float
    """That of one request."""
    timeout_s: float
    cold_start_s: float


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """What comes of it."""

    requests: float
    up_s: float
    """Of a machine that is given back; its cold starts are in it."""
    cold_starts: float
    cold_share: float
    """Of requests that wait for a cold start, as a whole or for the rest of it."""
    first_share: float
    """Of those that wait for all of it."""


def scaled_to_zero(demand: Demand) -> Day:
    """Of a day as long as any."""
    rate = demand.requests / demand.busy_s
    stay_s = demand.service_s + demand.timeout_s
    has_night = demand.busy_s < DAY_S
    off = exp(-rate * stay_s)
    off /= 1 + rate * demand.cold_start_s * off
    morning_s = min(stay_s, demand.busy_s) if has_night else 0.0
    morning_off_s = -expm1(-rate * morning_s) / rate
    off_s = morning_off_s + (demand.busy_s - morning_s) * off
    starts = rate * off_s
    night_s = min(_evening_s(rate, stay_s), DAY_S - demand.busy_s) if has_night else 0.0
    paying = 1 + rate * demand.cold_start_s
    return Day(
        requests=demand.requests,
        up_s=demand.busy_s - off_s + night_s,
        cold_starts=starts,
        cold_share=min(1.0, starts * paying / demand.requests),
        first_share=min(1.0, starts / demand.requests),
    )


def _evening_s(rate: float, stay_s: float) -> float:
    """How long it stays, on average, after the busy hours: what is left of the last request's stay."""
    return stay_s + expm1(-rate * stay_s) / rate


def by_gaps(gaps_s: Sequence[float], demand: Demand) -> Day:
    """The same where the gaps between a day's requests are given: they are gone through one by one.

    The first request finds the machine off. ``requests`` and ``busy_s`` of the demand are not looked at.
    """
    now_s = began_s = ready_s = 0.0
    until_s = -1.0
    up_s, starts, cold = 0.0, 0, 0
    for gap_s in (0.0, *gaps_s):
        now_s += gap_s
        if now_s > until_s:
            up_s += max(0.0, until_s - began_s)
            starts, began_s, ready_s = starts + 1, now_s, now_s + demand.cold_start_s
            cold += 1
        else:
            cold += now_s < ready_s
        until_s = max(until_s, max(now_s, ready_s) + demand.service_s + demand.timeout_s)
    requests = len(gaps_s) + 1
    return Day(
        requests=requests,
        up_s=up_s + until_s - began_s,
        cold_starts=starts,
        cold_share=cold / requests,
        first_share=starts / requests,
    )
