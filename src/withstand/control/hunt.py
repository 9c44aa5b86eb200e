"""The hunt for a limit as stages: one user alone, more and more users until they get no more, then load after load.

The first two say where to begin: no rate above what a crowd of users gets out of a server can be sustained, so the
first rate lies well below that. Pure: what has been tried goes in, the next stage comes out.
"""

from collections.abc import Sequence

import msgspec

from withstand.control.limit import Limit, limit_of
from withstand.control.probe import Look, Probed, Standing, Told
from withstand.control.repair import repaired
from withstand.control.search import Axis, Search
from withstand.spec import LimitSearch, Poisson, Stage, Until

ALONE, CROWD, SEARCH = "alone", "crowd", "search"
_ALONE_REQUESTS = 30
_ALONE_S = 30.0
_CROWDS = (8, 32, 128, 512)
_CROWD_S = 10.0
_CROWD_ANSWERS = 3.0
"""A crowd is held for so many of one user's answers at least."""
_NO_MORE = 1.15
"""A crowd four times as large that gets less than this more has found the server's end."""
_BEGIN_SHARE = 0.6
_LEAST_SHARE = 0.05
"""Of what one user makes: below, requests hardly ever meet."""


class Tried(msgspec.Struct, frozen=True):
    """A stage that is over."""

    stage: Stage
    look: Look | None = None
    request_throughput: float | None = None
    e2el_s: float | None = None
    times: tuple[Told | None, ...] = ()


def next_stage(wanted: LimitSearch, tried: Sequence[Tried]) -> Stage | None:
    """None = it is over."""
    alone = [one for one in tried if one.stage.phase == ALONE]
    if not alone:
        return _alone(wanted)
    if _is_broken(alone[0]):
        return None
    crowds = [one for one in tried if one.stage.phase == CROWD]
    if wanted.axis == "rate" and wanted.start is None and (users := _next_crowd(alone[0], crowds)):
        return _crowd(users, wanted, alone[0])
    load = _search(wanted, alone[0], crowds).next(repaired(_probed(tried), wanted.promises))
    return None if load is None else _try(load, wanted)


def found(wanted: LimitSearch, tried: Sequence[Tried]) -> Limit:
    """What is known by now."""
    alone = next((one.look for one in tried if one.stage.phase == ALONE and _is_broken(one)), None)
    return limit_of(_probed(tried), Axis(wanted.axis), wanted.promises, alone)


def _is_broken(one: Tried) -> bool:
    return one.look is not None and one.look.standing is Standing.BREAKS


def _alone(wanted: LimitSearch) -> Stage:
    return Stage(
        name=ALONE,
        phase=ALONE,
        max_concurrency=1,
        num_prompts=_ALONE_REQUESTS,
        duration_s=min(_ALONE_S, wanted.probe_s),
        until=Until(known=wanted.promises),
    )


def _next_crowd(alone: Tried, crowds: Sequence[Tried]) -> int | None:
    """None where a larger one would get no more."""
    got = [one.request_throughput or 0.0 for one in (alone, *crowds)]
    if len(crowds) == len(_CROWDS) or (len(got) > 2 and got[-1] < _NO_MORE * got[-2]):
        return None
    return _CROWDS[len(crowds)]


def _crowd(users: int, wanted: LimitSearch, alone: Tried) -> Stage:
    duration_s = max(_CROWD_S, _CROWD_ANSWERS * (alone.e2el_s or 0.0))
    return Stage(name=f"crowd-{users}", phase=CROWD, max_concurrency=users, duration_s=min(duration_s, wanted.probe_s))


def _search(wanted: LimitSearch, alone: Tried, crowds: Sequence[Tried]) -> Search:
    most = max((one.request_throughput or 0.0 for one in (alone, *crowds)), default=0.0)
    by_default = _BEGIN_SHARE * most if wanted.axis == "rate" else 1.0
    return Search(
        axis=Axis(wanted.axis),
        promises=wanted.promises,
        start=wanted.start or by_default or 1.0,
        precision=wanted.precision,
        least=_LEAST_SHARE * (alone.request_throughput or 1.0) if wanted.axis == "rate" else 1.0,
    )


def _try(load: float, wanted: LimitSearch) -> Stage:
    is_rate = wanted.axis == "rate"
    return Stage(
        name=f"{wanted.axis}-{load:g}",
        phase=SEARCH,
        duration_s=wanted.probe_s,
        until=Until(known=wanted.promises),
        **({"arrivals": Poisson(load)} if is_rate else {"max_concurrency": int(load)}),
    )


def _probed(tried: Sequence[Tried]) -> list[Probed]:
    searched = [(one, one.look) for one in tried if one.stage.phase == SEARCH]
    return [Probed(_load(one.stage), look, one.times, one.stage.name) for one, look in searched if look]


def _load(stage: Stage) -> float:
    return stage.arrivals.rate if isinstance(stage.arrivals, Poisson) else float(stage.max_concurrency or 0)
