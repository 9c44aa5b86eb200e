"""Who may stay in the machine's memory, who comes, and who goes: pure, with the time passed in.

An engine that answers somebody is never stopped. To make room the idle ones go, those first whose last request is
longest ago, and none that has come only just now. Where that is not enough, busy ones get no new requests until they
are free: otherwise two clients of one model in turn would keep all others out for ever.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct


class Resident(Struct, frozen=True, kw_only=True):
    """An engine that has memory: starting, up, or stopping."""

    name: str
    memory: float
    up: bool = True
    stopping: bool = False
    in_flight: int = 0
    used_s: float = 0.0
    """When it was last seen to do something."""
    since_s: float = 0.0
    """When it became ready."""
    idle_s: float = float("inf")
    unwanted: bool = False
    """It was removed, or its command is another by now: it goes as soon as it is free."""


class Wanted(Struct, frozen=True):
    """An engine that somebody waits for, and that has no memory yet."""

    name: str
    memory: float
    beside: str | None = None
    """A resident that it would be of no use without."""


class Room(Struct, frozen=True):
    """What there is for all, and how long each may stay at least."""

    memory: float
    residence_s: float


class Plan(Struct, frozen=True):
    """What is to be done now, by name. ``closing`` are busy and get no new requests; all others do."""

    stop: frozenset[str]
    start: tuple[str, ...]
    closing: frozenset[str]


def plan(residents: Sequence[Resident], wanted: Iterable[Wanted], room: Room, now_s: float) -> Plan:
    """``wanted`` in the order in which they have come: who is behind does not overtake, or the large would starve."""
    leaving = [r for r in residents if r.stopping or (r.up and _is_over(r, now_s))]
    start: list[str] = []
    free = room.memory - sum(r.memory for r in residents)
    for one in wanted:
        if one.memory > free:
            lacking = one.memory - free - sum(r.memory for r in leaving)
            others = [r for r in residents if r not in leaving and r.name != one.beside]
            leaving += _victims(others, lacking, room.residence_s, now_s)
            break
        free -= one.memory
        start.append(one.name)
    going = [r for r in leaving if r.up and not r.stopping]
    return Plan(
        stop=frozenset(r.name for r in going if not r.in_flight),
        start=tuple(start),
        closing=frozenset(r.name for r in going if r.in_flight),
    )


def _is_over(resident: Resident, now_s: float) -> bool:
    idle = not resident.in_flight and now_s - resident.used_s >= resident.idle_s
    return resident.unwanted or idle


def _victims(others: Sequence[Resident], lacking: float, residence_s: float, now_s: float) -> list[Resident]:
    """Those that go so that ``lacking`` more is free; nobody goes in vain."""
    may_go = [r for r in others if r.up and now_s - r.since_s >= residence_s]
    may_go.sort(key=lambda r: (r.in_flight > 0, r.used_s))
    chosen: list[Resident] = []
    for resident in may_go:
        if sum(r.memory for r in chosen) >= lacking:
            break
        chosen.append(resident)
    if sum(r.memory for r in chosen) < lacking:
        return []
    for resident in tuple(chosen):
        if sum(r.memory for r in chosen) - resident.memory >= lacking:
            chosen.remove(resident)
    return chosen
