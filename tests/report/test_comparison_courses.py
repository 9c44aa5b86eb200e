"""Where each set of conditions stands: one course for what varies together, and no two of them at one place."""

from typing import Any

from withstand.compare.shape import Group
from withstand.report.comparison_courses import courses


def group(phase: str | None = None, prompts: str | None = None, **where: Any) -> Group:
    conditions = {} if prompts is None else {"prompt length": prompts}
    return Group(label="x", phase=phase, conditions=conditions, rows=(), **where)


def told(*groups: Group) -> list[tuple[str, list[int]]]:
    return [(course.title, [index for index, _ in course.places]) for course in courses(groups)]


def test_rates_and_caps_are_courses_of_their_own() -> None:
    groups = [group(rate=1.0), group(concurrency=1), group(rate=5.0), group(), group(concurrency=4)]
    assert told(*groups) == [("Against offered rate", [0, 2, 3]), ("Against concurrency", [1, 4])]


def test_a_phase_of_growing_prompts_does_not_pile_up_at_one_cap() -> None:
    baseline = [group("baseline", str(length), concurrency=1) for length in (62, 94, 158)]
    users = [group("concurrency", concurrency=cap) for cap in (1, 2, 4)]
    assert told(*baseline, *users) == [("Against prompt length", [0, 1, 2]), ("Against concurrency", [3, 4, 5])]
    assert [at for _, at in courses(baseline)[0].places] == [62, 94, 158]


def test_two_lengths_at_each_rate_are_two_courses_with_names() -> None:
    groups = [group(prompts=length, rate=rate) for length in ("128", "1024") for rate in (1.0, 5.0)]
    assert told(*groups) == [
        ("Against offered rate, prompt length 128", [0, 1]),
        ("Against offered rate, prompt length 1024", [2, 3]),
    ]


def test_no_group_is_left_out_however_alike_they_are() -> None:
    groups = [group(rate=5.0), group(rate=5.0), group(rate=7.0)]
    assert sorted(index for _, places in told(*groups) for index in places) == [0, 1, 2]
