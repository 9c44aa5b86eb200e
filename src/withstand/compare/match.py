"""Brings runs together that were made under equal conditions, and names what has no partner, and why.

Several runs of one side under the same conditions are repeats. The first side is the baseline.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from withstand.compare.run import ComparedRun, ComparedSide, is_copy
from withstand.compare.setting import Setting, departures, other_labels, same_load, shared_conditions, untold
from withstand.compare.shape import Unmatched
from withstand.errors import UsageError
from withstand.interop import values

Runs = tuple[ComparedRun, ...]
_INSIST = "or insist by `withstand compare --force`"
"""Right in a terminal and on a page that cannot be told so."""


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of at least two sides under equal conditions; a side that has none there has an empty tuple."""

    label: str
    setting: Setting
    """The baseline's."""
    members: tuple[Runs, ...]
    remarks: tuple[str, ...] = ()


class Matching(msgspec.Struct, frozen=True):
    """All of it."""

    groups: tuple[Matched, ...]
    unmatched: tuple[Unmatched, ...]
    forced: bool
    """Something was brought together although its conditions differ."""


def match(sides: Sequence[ComparedSide], *, force: bool) -> Matching:
    """By load and conditions.

    Raises:
        UsageError: nothing can be compared, or a side has several things under one load, or a run and its copy.
    """
    clusters = [_clusters(side) for side in sides]
    groups, unmatched, forced = [], [], False
    used: set[int] = set()
    for own in clusters[0]:
        found = [_partner(own[0], others, force=force, alone=len(clusters[0]) == 1) for others in clusters[1:]]
        members = (own, *(partner for partner, _ in found))
        if not any(members[1:]):
            unmatched.append(Unmatched(0, own[0].setting.load, _why_alone(sides, found)))
            continue
        used.update(id(partner) for partner in members[1:] if partner)
        remarks = [remark for side, (_, said) in zip(sides[1:], found, strict=True) for remark in _named(side, said)]
        forced = forced or any(partner and why for partner, why in found)
        groups.append(_group(sides, members, remarks))
    for place, others in enumerate(clusters[1:], start=1):
        unmatched += [
            Unmatched(place, runs[0].setting.load, f"{sides[0].label} has nothing under these conditions.")
            for runs in others
            if id(runs) not in used
        ]
    if not groups:
        raise UsageError(_why_nothing(sides, clusters))
    return Matching(tuple(_told_apart(sorted(groups, key=_place))), tuple(unmatched), forced)


def _clusters(side: ComparedSide) -> list[Runs]:
    clusters: list[list[ComparedRun]] = []
    for run in side.runs:
        home = next((c for c in clusters if _repeats(c[0].setting, run.setting)), None)
        if home is None:
            clusters.append([run])
        else:
            _refuse_mixture(side, home[0], run)
            _refuse_copy(side, home, run)
            home.append(run)
    return [tuple(cluster) for cluster in clusters]


def _repeats(one: Setting, other: Setting) -> bool:
    return same_load(one, other) and not departures(one, other)


def _refuse_mixture(side: ComparedSide, one: ComparedRun, other: ComparedRun) -> None:
    """Two engines, or two headings, are no repeats of one another."""
    if one.source != other.source:
        return
    differing = {k: v for k, v in other_labels(one.setting, other.setting).items() if _is_name(v)}
    if differing:
        label, said = next(iter(differing.items()))
        raise UsageError(
            f"{side.label} holds several runs at {one.setting.load} whose {label} differs ({said}); "
            f"say which are sides by --by {label}, or give them as separate files."
        )


def _refuse_copy(side: ComparedSide, repeats: Iterable[ComparedRun], run: ComparedRun) -> None:
    """Chance moves no copy: as a repeat it would make anything look sure."""
    if twin := next((one for one in repeats if is_copy(one, run)), None):
        raise UsageError(
            f"{side.label} holds one run twice ({twin.source} and {run.source}); a copy is no repeat: leave one out."
        )


def _is_name(said: str) -> bool:
    """Numbers and dates differ between repeats too."""
    return not any(values.number(part) is not None or part[:2].isdigit() for part in said.split(" against "))


def _partner(own: ComparedRun, others: Sequence[Runs], *, force: bool, alone: bool) -> tuple[Runs, Mapping[str, str]]:
    """The runs of another side under the same conditions; forced, or for the reason why not, what differs.

    ``alone``: its side has no other load. Forced, it then belongs to the only one of the other side.
    """
    here = [runs for runs in others if same_load(own.setting, runs[0].setting)]
    if not here and force and alone and len(others) == 1:
        other = others[0][0].setting
        return others[0], {"load": f"{own.setting.load} against {other.load}"} | departures(own.setting, other)
    equal = next((runs for runs in here if not departures(own.setting, runs[0].setting)), None)
    if equal is not None:
        return equal, {}
    if not here:
        return (), {}
    nearest = min(here, key=lambda runs: len(departures(own.setting, runs[0].setting)))
    return (nearest if force else ()), departures(own.setting, nearest[0].setting)


def _why_alone(sides: Sequence[ComparedSide], found: Sequence[tuple[Runs, Mapping[str, str]]]) -> str:
    whys = [_differs(why) for _, why in found if why]
    others = ", ".join(side.label for side in sides[1:])
    return f"Not comparable: {whys[0]}." if whys else f"{others} has nothing at this load."


def _differs(why: Mapping[str, str]) -> str:
    return "; ".join(f"{what} {said}" for what, said in why.items())


def _named(side: ComparedSide, why: Mapping[str, str]) -> list[str]:
    return [f"Forced, not comparable with {side.label}: {_differs(why)}."] if why else []


def _group(sides: Sequence[ComparedSide], members: Sequence[Runs], remarks: Iterable[str]) -> Matched:
    own = members[0][0].setting
    told = []
    for side, runs in zip(sides[1:], members[1:], strict=True):
        if runs and (missing := untold(own, runs[0].setting)):
            told.append(f"Told by one side only, taken as equal with {side.label}: {', '.join(missing)}.")
    load = " against ".join(dict.fromkeys(runs[0].setting.load for runs in members if runs))
    label = load if own.phase is None or load.startswith(own.phase) else f"{own.phase}: {load}"
    return Matched(label=label, setting=own, members=tuple(members), remarks=(*remarks, *told))


def _told_apart(groups: Sequence[Matched]) -> Iterator[Matched]:
    """Groups of one load get into their label in what else they differ."""
    for group in groups:
        alike = [other.setting for other in groups if other.label == group.label]
        same = shared_conditions(alike)
        own = {name: said for name, said in shared_conditions([group.setting]).items() if name not in same}
        parts = [group.setting.phase or group.label, *(f"{name} {said}" for name, said in own.items())]
        yield msgspec.structs.replace(group, label=", ".join(parts)) if len(alike) > 1 else group


def _place(group: Matched) -> tuple[float, float]:
    setting = group.setting
    return (math.inf if setting.rate is None else setting.rate, setting.concurrency or math.inf)


def _why_nothing(sides: Sequence[ComparedSide], clusters: Sequence[Sequence[Runs]]) -> str:
    a, b = sides[0].label, sides[1].label
    for own in clusters[0]:
        for others in clusters[1:]:
            _, why = _partner(own[0], others, force=False, alone=False)
            if why:
                return (
                    f"{a} and {b} are not comparable at {own[0].setting.load}: {_differs(why)}; "
                    f"measure both alike, {_INSIST}."
                )
    loads = [", ".join(dict.fromkeys(runs[0].setting.load for runs in c)) for c in clusters[:2]]
    insist = f", {_INSIST}" if len(clusters[0]) == len(clusters[1]) == 1 else ""
    told = f"{a} and {b} have no load in common ({loads[0]}; {loads[1]})"
    return f"{told}; measure both at the same rate or concurrency{insist}."
