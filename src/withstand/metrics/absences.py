"""Which services of a stack were away during a stage, and for how much of it. Pure."""

from collections.abc import Iterable

import msgspec

from withstand.record import Outage

_S = 1e9


class Absence(msgspec.Struct, frozen=True, kw_only=True):
    """One service's, during one stage."""

    service: str
    from_s: float
    """Since the stage began; 0 = it was away by then."""
    for_s: float
    """All times together."""
    share: float
    """Of the stage."""
    times: int
    reason: str
    """Of the first time."""


def absences(outages: Iterable[Outage], began_ns: int, ended_ns: int) -> tuple[Absence, ...]:
    """Of the services that requests go through, in a stage (ns since the run's epoch), the longest first."""
    by_service: dict[str, list[Outage]] = {}
    for outage in outages:
        if outage.asked and _overlap_ns(outage, began_ns, ended_ns) > 0:
            by_service.setdefault(outage.service, []).append(outage)
    found = [_absence(several, began_ns, ended_ns) for several in by_service.values()]
    return tuple(sorted(found, key=lambda one: -one.for_s))


def _overlap_ns(outage: Outage, began_ns: int, ended_ns: int) -> int:
    back_ns = ended_ns if outage.back_ns is None else outage.back_ns
    return min(back_ns, ended_ns) - max(outage.began_ns, began_ns)


def _absence(outages: list[Outage], began_ns: int, ended_ns: int) -> Absence:
    first = min(outages, key=lambda one: one.began_ns)
    for_ns = sum(_overlap_ns(one, began_ns, ended_ns) for one in outages)
    return Absence(
        service=first.service,
        from_s=max(0, first.began_ns - began_ns) / _S,
        for_s=for_ns / _S,
        share=for_ns / (ended_ns - began_ns),
        times=len(outages),
        reason=first.reason,
    )
