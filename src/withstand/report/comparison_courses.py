"""Along what load was varied: each set of conditions stands on one course, over rate, concurrency or prompt length.

Phases of a plan are courses of their own, and so are sets of conditions that differ in more than the load.
"""

from collections.abc import Sequence

import msgspec

from withstand.compare.shape import Group
from withstand.interop.values import number

RATE, CONCURRENCY, LENGTH = "rate", "concurrency", "length"
TITLES = {
    RATE: "Against offered rate",
    CONCURRENCY: "Against concurrency",
    LENGTH: "Against prompt length",
}
_LENGTH = "prompt length"
_APART = ("model", "dataset", _LENGTH, "answer length")


class Course(msgspec.Struct, frozen=True):
    """Places along one axis, as (index of the group, where it is); None = inf, which has no place."""

    kind: str
    name: str
    """What sets it apart from the others of its kind; empty where there is no other."""
    places: tuple[tuple[int, float | None], ...]

    @property
    def title(self) -> str:
        """``Against concurrency``."""
        return f"{TITLES[self.kind]}, {self.name}" if self.name else TITLES[self.kind]


def courses(groups: Sequence[Group]) -> tuple[Course, ...]:
    """Every group in one of them."""
    found: dict[tuple[str | None, str], list[int]] = {}
    for index, group in enumerate(groups):
        found.setdefault((group.phase, _kind(group)), []).append(index)
    parts = [
        Course(kind, ", ".join(filter(None, (phase, name))), places)
        for (phase, loaded), members in found.items()
        for kind, name, places in _apart(groups, loaded, members)
    ]
    kinds = [course.kind for course in parts]
    return tuple(c if kinds.count(c.kind) > 1 else msgspec.structs.replace(c, name="") for c in parts)


_Part = tuple[str, str, tuple[tuple[int, float | None], ...]]


def _apart(groups: Sequence[Group], kind: str, members: Sequence[int]) -> list[_Part]:
    """One part where every load stands there once; else a part for what differs besides."""
    at = {index: _load(groups[index]) for index in members}
    if len(set(at.values())) == len(members):
        return [(kind, "", tuple(at.items()))]
    lengths = {index: number(groups[index].conditions.get(_LENGTH)) for index in members}
    if len(set(at.values())) == 1 and None not in lengths.values() and len(set(lengths.values())) == len(members):
        return [(LENGTH, "", tuple(lengths.items()))]
    split: dict[str, list[tuple[int, float | None]]] = {}
    for index in members:
        own = groups[index].conditions
        name = ", ".join(f"{key} {own[key]}" for key in _APART if key in own and _differs(groups, members, key))
        split.setdefault(name, []).append((index, at[index]))
    return [(kind, name, tuple(places)) for name, places in split.items()]


def _differs(groups: Sequence[Group], members: Sequence[int], key: str) -> bool:
    return len({groups[index].conditions.get(key) for index in members}) > 1


def _kind(group: Group) -> str:
    return CONCURRENCY if group.rate is None and group.concurrency is not None else RATE


def _load(group: Group) -> float | None:
    return group.concurrency if group.rate is None else group.rate
