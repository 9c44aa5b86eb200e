"""The words and figures of a comparison: one list of them, so that page, Markdown and terminal say the same.

A value is rounded here and nowhere else; what cannot be known is a dash.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from withstand.compare.shape import Comparison, Difference, Group, Objection, Row, Side, Verdict
from withstand.metrics.doubts import Doubt
from withstand.metrics.summary import Interval
from withstand.report.numbers import UNKNOWN, count, counted, decimals_of, fixed, percent, signed_percent
from withstand.report.standing import Heard, few, gathered

FIRST = ("ttft.mean", "tpot.mean", "itl.mean", "output_throughput")
"""What is shown without being asked for."""
HEADLINE = (
    *FIRST,
    "request_throughput",
    "e2el.mean",
    "success_rate",
    "ttft.p50",
    "ttft.p90",
    "ttft.p99",
    "tpot.p50",
    "e2el.p50",
    "e2el.p99",
)
"""What a reader looks for, in this order."""

FORCED = "Forced: conditions differ, and the user insisted. What differs may explain every difference below."
_NAMED_MAX = 3
_FROM_MAX = 1000


class Listed(msgspec.Struct, frozen=True):
    """One metric over all groups that have it, in the groups' order."""

    metric: str
    pairs: tuple[tuple[Group, Row], ...]

    @property
    def first(self) -> Row:
        """For what all rows share: title, unit, direction."""
        return self.pairs[0][1]

    @property
    def decimals(self) -> int:
        """Enough for the smallest value."""
        return decimals_of(cell.value for _, row in self.pairs for cell in row.cells)


class Notes:
    """Numbers sentences as they are first referred to; the same sentence keeps its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def refer(self, sentences: Iterable[str]) -> list[int]:
        """The sentences' numbers, each once, from low to high."""
        return sorted({self._numbers.setdefault(sentence, len(self._numbers) + 1) for sentence in sentences})

    def listed(self) -> list[tuple[int, str]]:
        """All of them, in order."""
        return [(number, sentence) for sentence, number in self._numbers.items()]


def letter(place: int) -> str:
    """``a``, ``b`` … ``z``, ``aa``: a note's mark, where numbers are those of doubts."""
    before, last = divmod(place - 1, 26)
    return (letter(before) if before else "") + chr(ord("a") + last)


def title(comparison: Comparison) -> str:
    """``vllm vs. sgl``; with more sides than one can read, the first and how many others."""
    first, *others = [side.label for side in comparison.sides]
    if len(others) > _NAMED_MAX:
        return f"{first} vs. {counted(len(others), 'other')}"
    return " vs. ".join([first, *others])


def opened(metrics: Sequence[Listed]) -> list[Listed]:
    """Those that are shown without being asked for, never none."""
    return [one for one in metrics if one.metric in FIRST] or list(metrics[: len(FIRST)])


def listed(comparison: Comparison) -> list[Listed]:
    """Every metric, those of ``HEADLINE`` first, else as they came."""
    rows: dict[str, list[tuple[Group, Row]]] = {}
    for group in comparison.groups:
        for row in group.rows:
            rows.setdefault(row.metric, []).append((group, row))
    order = sorted(rows, key=_rank)
    return [Listed(metric, tuple(rows[metric])) for metric in order]


def _rank(metric: str) -> int:
    return HEADLINE.index(metric) if metric in HEADLINE else len(HEADLINE)


def unit(row: Row) -> str:
    """As it stands in a heading; a share is told in percent."""
    return "%" if row.unit == "share" else row.unit


def value(row: Row, amount: float | None, decimals: int) -> str:
    """Without its unit."""
    return percent(amount).removesuffix(" %") if row.unit == "share" else fixed(amount, decimals)


def direction(row: Row) -> str:
    """``lower is better``."""
    return {True: "lower is better", False: "higher is better", None: ""}[row.lower_is_better]


def interval(row: Row, ends: Interval | None, decimals: int) -> str | None:
    """``41.20 to 48.10``; ``?`` is an end that so few values cannot bound."""
    if ends is None:
        return None
    low, high = ("?" if end is None else value(row, end, decimals) for end in (ends.low, ends.high))
    return f"{low} to {high}"


def difference_interval(difference: Difference) -> str | None:
    """``+12.0 to +60.1 %``."""
    ends = difference.interval
    if ends is None:
        return None
    return f"{_end(ends.low)} to {_end(ends.high)} %"


def _end(percent: float | None) -> str:
    """``+60.1``; beyond ten times as much nobody cares how far."""
    if percent is None:
        return "?"
    return signed_percent(percent).removesuffix(" %") if percent <= _FROM_MAX else f"> +{_FROM_MAX:,}"


def verdict(row: Row, difference: Difference) -> str:
    """In words that fit the metric: times and rates are faster, all else is better."""
    if difference.is_negligible:
        return "negligible"
    if difference.verdict is Verdict.NO_DIFFERENCE:
        return "no difference shown"
    if difference.verdict is Verdict.UNKNOWN:
        return "cannot be concluded"
    fast = row.unit in {"ms", "s"} or row.unit.endswith("/s")
    if difference.verdict is Verdict.BETTER:
        return "faster" if fast else "better"
    return "slower" if fast else "worse"


def is_of_many(difference: Difference) -> bool:
    """Whether nothing is shown only because so much was compared."""
    return difference.verdict is Verdict.NO_DIFFERENCE and difference.is_chance_of_many


def short_verdict(row: Row, difference: Difference) -> str:
    """The same in a word or two, for a narrow column."""
    short = {"no difference shown": "not shown", "cannot be concluded": "unknown"}
    told = verdict(row, difference)
    return short.get(told, told)


def fastest(comparison: Comparison, row: Row) -> str:
    """A side's label."""
    return UNKNOWN if row.fastest is None else comparison.sides[row.fastest].label


def faster_by(row: Row) -> str:
    """``30.58 %``, with two decimals as such tables have it."""
    return UNKNOWN if row.faster_by_percent is None else f"{row.faster_by_percent:,.2f} %"


def shows_from(difference: Difference) -> str | None:
    """``≥ 4.2 %``: where nothing was shown, what as much data would have shown."""
    least = difference.shows_from_percent
    if least is None or difference.verdict is not Verdict.NO_DIFFERENCE or difference.is_negligible:
        return None
    return f"≥ {least:.{0 if least >= 10 else 1}f} %" if least < _FROM_MAX else f"> {_FROM_MAX:,} %"


def some_shown(comparison: Comparison) -> bool:
    """Whether any row says what would have been shown."""
    return any(d and shows_from(d) for group in comparison.groups for row in group.rows for d in row.differences)


def level(comparison: Comparison) -> str:
    """How the headline is to be taken: ``fallen``, ``doubted`` or ``stands``.

    It rests on what no doubt forbids: as long as there is any of that, a doubt about other numbers lets it stand.
    """
    heard = doubts(comparison)
    rows = (row for group in comparison.groups for row in group.rows)
    is_known = any(one and one.verdict is not Verdict.UNKNOWN for row in rows for one in row.differences)
    if comparison.forced or (not is_known and any(doubt.blocking for doubt in heard)):
        return "fallen"
    return "doubted" if heard else "stands"


class Numbered:
    """The doubts of a comparison, loudest first, each kind under one number, by which the rows refer to them."""

    def __init__(self, comparison: Comparison) -> None:
        self.heard = doubts(comparison)
        cases = [(case.sentence, place) for place, one in enumerate(self.heard, start=1) for case in one.cases]
        self._places = dict(reversed(cases))

    def of(self, said: Iterable[Doubt]) -> list[int]:
        """Their numbers, each once, from low to high."""
        return sorted({self._places[doubt.sentence] for doubt in said if doubt.sentence in self._places})


class Marker(msgspec.Struct, frozen=True):
    """What a table refers to: numbers are those of doubts, letters those of notes; ``common`` needs none."""

    numbered: Numbered
    notes: Notes
    common: str | None

    def of_row(self, row: Row) -> str:
        """All that stands against a row's verdict, and beside its values."""
        doubts = [*row.because, *(doubt for cell in row.cells for doubt in cell.doubts)]
        return self.of(doubts, own_notes(row, self.common))

    def of_verdict(self, row: Row) -> str:
        """What forbids it."""
        return self.of(row.because, own_notes(row, self.common))

    def of_objection(self, objection: Objection) -> str:
        """What stands against a decision."""
        notes = [objection.note] if objection.note and objection.note != self.common else []
        return self.of(objection.doubts, notes)

    def of(self, doubts: Iterable[Doubt], notes: Iterable[str] = ()) -> str:
        """``1, 4, a``; nothing where there are none."""
        return ", ".join([*map(str, self.numbered.of(doubts)), *map(letter, self.notes.refer(notes))])


def is_forbidden(row: Row, side: int) -> bool:
    """Whether a doubt that forbids a verdict is about this side's value, or about all sides."""
    told = {doubt for cell in row.cells for doubt in cell.doubts}
    return any(doubt in row.cells[side].doubts or doubt not in told for doubt in row.because)


def common_lack(comparison: Comparison) -> str | None:
    """What is said once, because it holds for every row that has no doubt."""
    rows = [row for group in comparison.groups for row in group.rows]
    lacks = {lack for row in rows for lack in row.lacks}
    everywhere = all(row.lacks or row.because for row in rows)
    return lacks.pop() if len(lacks) == 1 and everywhere else None


def common_cure(comparison: Comparison) -> str | None:
    """What would be needed to conclude more, where it is the same for all rows."""
    return common_cure_of(row for group in comparison.groups for row in group.rows)


def common_cure_of(rows: Iterable[Row]) -> str | None:
    """The same for some of them."""
    found = {difference.enough for row in rows for difference in row.differences if difference}
    return found.pop() if len(found) == 1 else None


def to_conclude_more(cure: str) -> str:
    """The sentence about it."""
    return f"To conclude more: {cure}."


def own_notes(row: Row, common: str | None) -> list[str]:
    """What this row has too little of, beyond what all have, and how its verdict is to be taken."""
    return [*(lack for lack in row.lacks if lack != common), *row.cautions]


def longer(comparison: Comparison) -> list[str]:
    """Where a longer measurement would show what this one could not; nothing where a doubt forbids a verdict anyway.

    All of them where the user has said what he aims at, else the first.
    """
    told = [
        f"{row.title} at {group.label}{f' of {side.label}' if len(comparison.sides) > 2 else ''}: {difference.enough}"
        for group in comparison.groups
        for row in group.rows
        for side, difference in zip(comparison.sides, row.differences, strict=True)
        if difference and difference.enough and difference.interval and not row.because
    ]
    return told if comparison.aim_percent else few(told, _NAMED_MAX)


def unmatched(comparison: Comparison) -> list[str]:
    """What has no equal, those with one reason in one sentence."""
    alone: dict[tuple[int, str], list[str]] = {}
    for one in comparison.unmatched:
        alone.setdefault((one.side, one.why), []).append(one.what)
    return [
        f"{comparison.sides[side].label} at {', '.join(few(whats))} is left out. {why}"
        for (side, why), whats in alone.items()
    ]


def side_facts(side: Side) -> list[str]:
    """Model, tool, sources, whether there is more than aggregates, and what holds nothing."""
    sources = ", ".join(few([source for source in side.sources if source != side.label], 3))
    facts = (side.model, f"by {side.tool}", "" if side.facts else "aggregates only", sources, nothing_in(side))
    return [fact for fact in facts if fact]


def nothing_in(side: Side) -> str:
    """Which of its sources gave no run."""
    return f"nothing was measured in {', '.join(few(side.empty, 3))}" if side.empty else ""


def who_is_who(comparison: Comparison) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """What all sides share, facts and conditions; and each side's label with what is its own."""
    facts = [side_facts(side) for side in comparison.sides]
    shared = [fact for fact in facts[0] if all(fact in others for others in facts[1:])] if facts else []
    conditions = [f"{name} {said}" for name, said in shared_conditions(comparison.groups).items()]
    told = [*shared, *(condition for condition in conditions if not any(condition.endswith(fact) for fact in shared))]
    labels = [side.label for side in comparison.sides]
    return told, [(label, [f for f in own if f not in shared]) for label, own in zip(labels, facts, strict=True)]


def work(group: Group) -> str:
    """``2,000 requests``, ``1,015 of 2,000 answered``, and where sides differ ``94 to 100 of 100 answered``."""
    known = [(v.completed, v.attempted) for v in group.volumes if v.completed is not None and v.attempted is not None]
    if not known:
        return ""
    completed, attempted = (_span([pair[which] for pair in known]) for which in (0, 1))
    if all(done == asked for done, asked in known):
        return f"{attempted} {'request' if attempted == '1' else 'requests'}"
    return f"{completed} of {attempted} answered"


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def doubts(comparison: Comparison) -> tuple[Heard, ...]:
    """Of the whole, of the sides and of single values: each kind once, the loudest first."""
    of_cells = list(_doubts_of_cells(comparison))
    placed = {(doubt.sentence, label) for doubt, label, _ in of_cells}
    of_sides = [(doubt, side.label) for side in comparison.sides for doubt in side.doubts]
    elsewhere = [(doubt, label) for doubt, label in of_sides if (doubt.sentence, label) not in placed]
    alone = len(comparison.groups) == 1
    where = [(doubt, label if alone else f"{label} at {group}") for doubt, label, group in of_cells]
    return gathered([*((doubt, None) for doubt in comparison.doubts), *elsewhere, *where])


def _doubts_of_cells(comparison: Comparison) -> Iterator[tuple[Doubt, str, str]]:
    """Each with the labels of its side and its group."""
    for group in comparison.groups:
        for row in group.rows:
            for side, cell in zip(comparison.sides, row.cells, strict=True):
                yield from ((doubt, side.label, group.label) for doubt in cell.doubts)


def remarks(comparison: Comparison) -> dict[str, list[str]]:
    """What was remarked on groups, and is no doubt already → the groups' labels."""
    doubted = {case.sentence for doubt in doubts(comparison) for case in doubt.cases}
    said: dict[str, list[str]] = {}
    for group in comparison.groups:
        for remark in group.remarks:
            said.setdefault(remark, []).append(group.label)
    return {remark: labels for remark, labels in said.items() if remark not in doubted}


def own_conditions(comparison: Comparison, group: Group) -> str:
    """What a group has beyond what all share, and how much was done in it."""
    shared = shared_conditions(comparison.groups)
    own = [f"{name} {said}" for name, said in group.conditions.items() if name not in shared]
    apart = [condition for condition in own if condition not in group.label]
    return " · ".join([*apart, *([work(group)] if work(group) else [])])


def shared_conditions(groups: Sequence[Group]) -> dict[str, str]:
    """What is the same in all groups."""
    first, *others = groups or [Group(label="", rows=())]
    return {k: v for k, v in first.conditions.items() if all(group.conditions.get(k) == v for group in others)}
