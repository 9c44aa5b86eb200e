"""Who gave nothing: a side without a run, a run without a good answer, a rate of 0. No ratio tells of these."""

from collections.abc import Iterator, Sequence

from withstand.compare.shape import Group, Row, Side

_NAMED_MAX = 3


def failures(sides: Sequence[Side], groups: Sequence[Group]) -> list[str]:
    """Of all but the baseline, a sentence each, without its full stop."""
    place_of_others = range(1, len(sides))
    absent = [f"{sides[i].label} has no run to compare" for i in place_of_others if _is_absent(groups, i)]
    silent = [told for i in place_of_others for told in without_answer(sides, groups, i)]
    return [*absent, *silent, *(told for i in place_of_others for told in _without_rate(sides, groups, i))]


def without_answer(sides: Sequence[Side], groups: Sequence[Group], place: int) -> Iterator[str]:
    """``bad has no good answer at 5 req/s``, ``1 of 3 runs of bad has …``: with all loads where it is so."""
    loads: dict[str, list[str]] = {}
    for group in groups:
        for volume in group.volumes[place : place + 1]:
            if volume.unanswered:
                whole = volume.unanswered == volume.runs
                who = "" if whole else f"{volume.unanswered} of {volume.runs} runs of "
                loads.setdefault(who, []).append(group.label)
    return (f"{who}{sides[place].label} has no good answer at {_named(at)}" for who, at in loads.items())


def _named(loads: Sequence[str]) -> str:
    return ", ".join(loads) if len(loads) <= _NAMED_MAX else f"{len(loads)} loads"


def _is_absent(groups: Sequence[Group], place: int) -> bool:
    volumes = [group.volumes[place] for group in groups if group.volumes]
    return bool(volumes) and not any(volume.runs for volume in volumes)


def _without_rate(sides: Sequence[Side], groups: Sequence[Group], place: int) -> Iterator[str]:
    """There are answers, but what the baseline has of tokens or requests a second is 0 here."""
    for group in groups:
        if not any(volume.unanswered for volume in group.volumes[place : place + 1]):
            gone = (row.title for row in group.rows if _is_gone(row, place))
            yield from (f"{title} of {sides[place].label} at {group.label} is 0" for title in gone)


def _is_gone(row: Row, place: int) -> bool:
    return row.lower_is_better is False and row.cells[place].value == 0 and bool(row.cells[0].value)
