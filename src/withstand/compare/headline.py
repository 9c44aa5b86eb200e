"""The comparison in one sentence, and how its verdicts came about in one paragraph."""

from collections import Counter
from collections.abc import Sequence

from withstand.compare.failures import without_answer
from withstand.compare.shape import SHOWN, Difference, Group, Method, Row, Side, Verdict
from withstand.compare.trust import is_other_work
from withstand.metrics.doubts import Doubt
from withstand.metrics.rounding import counted

_ONCE = " Each ran once, and the machine itself may have changed between: `withstand ab` measures them in turn."
_NOTHING = {False: "No difference is shown.", True: "No difference that matters is shown."}


def headline(sides: Sequence[Side], groups: Sequence[Group], doubts: Sequence[Doubt], *, forced: bool) -> str:
    """What can be concluded, the largest shown difference first; ``doubts`` are those of the groups."""
    labels = [side.label for side in sides]
    found = [
        (group, row, place, difference)
        for group in groups
        for row in group.rows
        for place, difference in enumerate(row.differences)
        if difference
    ]
    counts = Counter("negligible" if d.is_negligible else _COUNTED[d.verdict] for _, _, _, d in found)
    shown = [item for item in found if item[3].verdict in SHOWN]
    silent = [f"{told}. " for place in range(len(sides)) for told in without_answer(sides, groups, place)]
    prefix = "".join(["Forced, conditions differ: " if forced else "", *silent])
    known = shown or [item for item in found if item[3].verdict is Verdict.NO_DIFFERENCE]
    if known:
        told = _largest(labels, shown) if shown else _NOTHING["negligible" in counts]
        once = all(difference.method is Method.BLOCKS for _, _, _, difference in known)
        return f"{prefix}{told} {_counted(counts)}{_ONCE if once else ''}"
    other = "The sides did not do the same work. " if is_other_work(doubts) else ""
    return f"{prefix}Nothing can be concluded. {other}{_why_nothing(sides, found)}".strip()


def _largest(labels: Sequence[str], shown: Sequence[tuple[Group, Row, int, Difference]]) -> str:
    """For each side that differs what it is better and worse in, most of all."""
    parts = []
    for place, label in enumerate(labels):
        for verdict in SHOWN:
            found = [item for item in shown if item[2] == place and item[3].verdict is verdict]
            if found:
                parts.append(f"{label} is {verdict.value} than {labels[0]}{_most(found)}")
    return f"{'; '.join(parts)}."


def _most(found: Sequence[tuple[Group, Row, int, Difference]]) -> str:
    group, row, _, difference = max(found, key=lambda item: abs(item[3].percent or 0.0))
    assert difference.percent is not None
    interval = difference.interval
    between = f" ({interval.low:+.1f} to {interval.high:+.1f} %)" if interval and _is_closed(difference) else ""
    most = ", most in" if len(found) > 1 else " in"
    return f"{most} {row.title} at {group.label}: {difference.percent:+.1f} %{between}"


def _is_closed(difference: Difference) -> bool:
    interval = difference.interval
    return interval is not None and interval.low is not None and interval.high is not None


_COUNTED = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.NO_DIFFERENCE: "without a difference that is shown",
    Verdict.UNKNOWN: "unknown",
}


def _counted(counts: Counter[str]) -> str:
    better, worse, *others = _COUNTED.values()
    parts = [f"{counts[word]} {word}" for word in (better, worse, "negligible", *others) if counts[word]]
    return f"Of {counted(counts.total(), 'comparison')}: {', '.join(parts)}."


def _why_nothing(sides: Sequence[Side], found: Sequence[tuple[Group, Row, int, Difference]]) -> str:
    if not found:
        return "The sides have no metric in common."
    aggregates = any(not side.facts for side in sides)
    if aggregates and all(difference.method is Method.NONE for _, _, _, difference in found):
        return "The files hold aggregates of single runs: how far chance moves their numbers is not known."
    return "What stands against it is said at each row."


_HOW = {
    Method.REPEATS: (
        "Runs were repeated: Welch's test on the logarithms over whole runs; values are geometric means of the runs. "
        "Where one side has a single run, the other side's spread stands for both."
    ),
    Method.PAIRS: (
        "Both sides were measured in turn: each pair of blocks gives one ratio, from which a drift from block to block "
        "is taken out; Student's t over the pairs, on logarithms."
    ),
    Method.BLOCKS: (
        "Single runs with their requests: the spread of a number is taken from the slow waves of its course over time, "
        "each spanning several times the requests' memory of each other, so that requests which queue behind one "
        "another do not count as independent (the closed form of a block bootstrap). It tells these two runs apart, "
        "not what a restart, another hour or another machine does: for that, repeat whole runs."
    ),
    Method.NONE: "Aggregates of a single run have no interval, so nothing can be concluded from their difference.",
}


def method_told(sides: Sequence[Side], groups: Sequence[Group], tests: int, negligible_percent: float) -> str:
    """For the reader of the tables."""
    used = {d.method for group in groups for row in group.rows for d in row.differences if d}
    used -= {Method.NONE} if all(side.facts for side in sides) else set()
    parts = [text for method, text in _HOW.items() if method in used]
    if tests:
        parts.append(
            f"Intervals are of 95 % each; chances are corrected for {_tested(tests, groups)}. A difference under "
            f"{negligible_percent:g} % is called negligible, even where it is shown."
        )
    of = "differences without the drift" if Method.PAIRS in used else "unrounded values"
    parts.append(f"Faster by = (slower - faster) / slower, from {of}, whatever can be concluded.")
    return " ".join(parts)


def _tested(tests: int, groups: Sequence[Group]) -> str:
    """The same number as the headline's, or why it is another."""
    of = sum(d is not None for group in groups for row in group.rows for d in row.differences)
    if tests == of:
        return f"{counted(tests, 'comparison')} (Holm)"
    why = "the others have no spread to test by, or two equal values without any"
    return f"the {tests} of {counted(of, 'comparison')} that can be tested (Holm); {why}"
