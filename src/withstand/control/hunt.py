"""The hunt for a limit as stages: one user alone, more and more users until they get no more, then load after load.

The first two say where to begin: no rate above what a crowd of users gets out of a server can be sustained, so the
first rate lies well below that. Pure: what has been tried goes in, the next stage comes out.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from withstand.control.floor import floor_of, next_users
from withstand.control.limit import Limit, limit_of
from withstand.control.patience import alone_s, crowd_s, probe_s
from withstand.control.probe import Look, Probed, Standing
from withstand.control.repair import repaired
from withstand.control.search import Axis, Search
from withstand.control.tried import ALONE, CHECK, CROWD, SEARCH, Tried
from withstand.spec import LimitSearch, Poisson, Stage, Until

_ALONE_REQUESTS = 30
_CHECK_REQUESTS, _CHECK_S = 3, 30.0
_CROWDS = (8, 32, 128, 512)
_NO_MORE = 1.15
"""A crowd four times as large that gets less than this more has found the server's end."""
_BEGIN_SHARE = 0.6
_LEAST_SHARE = 0.05
"""Of what one user makes: below, requests hardly ever meet."""


def next_stage(wanted: LimitSearch, tried: Sequence[Tried]) -> Stage | None:
    """None = it is over."""
    alone = [one for one in tried if one.stage.phase == ALONE]
    if not alone:
        return _alone(wanted)
    if tried[-1].stage.phase == CHECK and not tried[-1].answered:
        return None
    if tried[-1].is_suspicious:
        return _check(tried)
    if _is_hopeless(alone[0]):
        return None
    crowds = [one for one in tried if one.stage.phase == CROWD]
    if wanted.axis == "rate" and wanted.start is None and (users := _next_crowd(alone[0], crowds)):
        return _crowd(users, wanted, alone[0])
    load = _next_load(wanted, tried, crowds)
    return None if load is None else _try(load, wanted, tried)


def found(wanted: LimitSearch, tried: Sequence[Tried]) -> Limit:
    """What is known by now."""
    alone = next((one.look for one in tried if one.stage.phase == ALONE and _is_hopeless(one)), None)
    limit = limit_of(_probed(tried), Axis(wanted.axis), wanted.promises, alone)
    return replace(limit, precision=wanted.precision, floor=floor_of(wanted, tried))


def _is_hopeless(one: Tried) -> bool:
    """Even one user alone does not get it, or our own client cannot even tell that."""
    return one.look is not None and (one.look.standing is Standing.BREAKS or bool(one.look.doubt))


def _alone(wanted: LimitSearch) -> Stage:
    return Stage(
        name=ALONE,
        phase=ALONE,
        max_concurrency=1,
        num_prompts=_ALONE_REQUESTS,
        duration_s=alone_s(wanted),
        until=Until(known=wanted.promises),
    )


def _check(tried: Sequence[Tried]) -> Stage:
    """Is the server still there?"""
    return Stage(
        name=f"check-after-{tried[-1].stage.name}",
        phase=CHECK,
        max_concurrency=1,
        num_prompts=_CHECK_REQUESTS,
        duration_s=_CHECK_S,
    )


def _next_crowd(alone: Tried, crowds: Sequence[Tried]) -> int | None:
    """None where a larger one would get no more, or could not be sent."""
    got = [one.request_throughput or 0.0 for one in (alone, *crowds)]
    is_full = len(crowds) == len(_CROWDS) or any(one.look and one.look.doubt for one in crowds)
    return None if is_full or (len(got) > 2 and got[-1] < _NO_MORE * got[-2]) else _CROWDS[len(crowds)]


def _crowd(users: int, wanted: LimitSearch, alone: Tried) -> Stage:
    return Stage(name=f"crowd-{users}", phase=CROWD, max_concurrency=users, duration_s=crowd_s(wanted, alone))


def _next_load(wanted: LimitSearch, tried: Sequence[Tried], crowds: Sequence[Tried]) -> float | None:
    """For the upper end first, then for the lower one, if tokens have a price that they may cost."""
    probed = repaired(_probed(tried), wanted.promises)
    load = _search(wanted, tried, crowds).next(probed)
    return next_users(wanted, tried) if load is None else load


def _search(wanted: LimitSearch, tried: Sequence[Tried], crowds: Sequence[Tried]) -> Search:
    alone = next(one for one in tried if one.stage.phase == ALONE)
    most = max((one.request_throughput or 0.0 for one in (alone, *crowds)), default=0.0)
    by_default = _BEGIN_SHARE * most if wanted.axis == "rate" else 1.0
    return Search(
        axis=Axis(wanted.axis),
        promises=wanted.promises,
        start=wanted.start or by_default or 1.0,
        precision=wanted.precision,
        least=_LEAST_SHARE * (alone.request_throughput or 1.0) if wanted.axis == "rate" else 1.0,
    )


def _try(load: float, wanted: LimitSearch, tried: Sequence[Tried]) -> Stage:
    is_rate = wanted.axis == "rate"
    name = f"{wanted.axis}-{load:g}"
    again = sum(one.stage.name.startswith(name) and one.load == load for one in tried)
    return Stage(
        name=f"{name}-again" if again else name,
        phase=SEARCH,
        duration_s=probe_s(wanted, load, tried),
        until=Until(known=wanted.promises),
        **({"arrivals": Poisson(load)} if is_rate else {"max_concurrency": int(load)}),
    )


def _probed(tried: Sequence[Tried]) -> list[Probed]:
    searched = [(one, one.look) for one in tried if one.stage.phase == SEARCH]
    return [Probed(one.load, look, one.times, one.stage.name) for one, look in searched if isinstance(look, Look)]
