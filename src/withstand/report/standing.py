"""Do the numbers stand? The doubts of all stages, each kind said once and the loudest first, and one sentence on top.

The order of ``DoubtKind`` is that of the reader's interest: what we did wrong, what the server did, then the setting.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.summary import Summary
from withstand.report.numbers import counted

_LOUDNESS = {kind: place for place, kind in enumerate(DoubtKind)}
_AS_ABOVE = "As above."
_NAMED_MAX = 6
_ALIKE_MAX = 12


class Case(msgspec.Struct, frozen=True):
    """One sentence, and the stages that it was said of; none = the run as a whole."""

    sentence: str
    stages: tuple[str, ...]
    brief: str = ""

    @property
    def told(self) -> str:
        """``a, b: 28.45 of 35``: where, and the figures there."""
        return f"{_named(self.stages)}: {self.brief}"


class Heard(msgspec.Struct, frozen=True):
    """One kind of doubt over all stages. The first case is the one to show."""

    kind: DoubtKind
    blocking: bool
    remedy: str
    cases: tuple[Case, ...]
    is_as_above: bool = False
    """The one before it has the same remedy."""

    @property
    def brief_remedy(self) -> str:
        """For a list whose lines stand right below each other."""
        return _AS_ABOVE if self.is_as_above else self.remedy

    @property
    def sentence(self) -> str:
        """Of the first stage that raised it."""
        return self.cases[0].sentence

    @property
    def where(self) -> str:
        """``in a, b · alike in c: 28.45 of 35``: the sentence has the figures of the first; the others have theirs."""
        first, *others = self.cases
        briefly = told_of(first, [case for case in others if case.stages and case.brief])
        named = [n for n in dict.fromkeys(n for c in others if not c.brief for n in c.stages) if n not in first.stages]
        alike = [*briefly, *([_named(named)] if named else [])]
        places = (("in", _named(first.stages)), ("alike in", "; ".join(few(alike, _ALIKE_MAX))))
        return " · ".join(f"{word} {names}" for word, names in places if names)


def told_of(first: Case, others: Sequence[Case]) -> list[str]:
    """``a, b: 28.45 of 35``, a case each; where a place has several, as a side of several runs has, a place each."""
    by_place: dict[str, list[str]] = {}
    for case in others:
        for place in case.stages:
            by_place.setdefault(place, []).append(case.brief)
    if not by_place.keys() & set(first.stages) and all(len(briefs) == 1 for briefs in by_place.values()):
        return [case.told for case in others]
    other = {place: "other runs" if place in first.stages else "runs" for place in by_place}
    return [f"{other[place]} of {place}: {', '.join(briefs)}" for place, briefs in by_place.items()]


class Level(StrEnum):
    """How far the numbers can be believed."""

    STANDS = "stands"
    DOUBTED = "doubted"
    FALLEN = "fallen"


class Standing(msgspec.Struct, frozen=True):
    """The judgement on a run, in a word and in a sentence."""

    level: Level
    sentence: str


def heard(summary: Summary) -> tuple[Heard, ...]:
    """Every doubt, gathered by kind; blocking ones first, then in the order of ``DoubtKind``."""
    return gathered(_all_doubts(summary))


def gathered(doubts: Iterable[tuple[Doubt, str | None]]) -> tuple[Heard, ...]:
    """The same for doubts from anywhere, each with the name of its place; None = the whole."""
    said: dict[tuple[bool, DoubtKind], list[tuple[Doubt, str | None]]] = {}
    for doubt, place in doubts:
        said.setdefault((doubt.blocking, doubt.kind), []).append((doubt, place))
    order = sorted(said, key=lambda key: (not key[0], _LOUDNESS[key[1]]))
    return _folded([_heard(said[key]) for key in order])


def _folded(doubts: list[Heard]) -> tuple[Heard, ...]:
    """One remedy for several doubts in a row need be said only once."""
    before = [None, *(doubt.remedy for doubt in doubts)]
    return tuple(
        msgspec.structs.replace(doubt, is_as_above=doubt.remedy == last)
        for doubt, last in zip(doubts, before, strict=False)
    )


def _all_doubts(summary: Summary) -> list[tuple[Doubt, str | None]]:
    alone = len(summary.stages) == 1
    of_stages = [(doubt, None if alone else stage.name) for stage in summary.stages for doubt in stage.doubts]
    return [*((doubt, None) for doubt in summary.doubts), *of_stages]


def _heard(said: list[tuple[Doubt, str | None]]) -> Heard:
    first = said[0][0]
    places: dict[tuple[str, str], dict[str, None]] = {}
    for doubt, place in said:
        places.setdefault((doubt.sentence, doubt.brief), {}).update({} if place is None else {place: None})
    cases = tuple(Case(sentence, tuple(names), brief) for (sentence, brief), names in places.items())
    return Heard(first.kind, first.blocking, first.remedy, cases)


def _named(names: Sequence[str]) -> str:
    """Names that have commas themselves are set apart by more than one."""
    return ("; " if any("," in name for name in names) else ", ").join(few(names, _NAMED_MAX))


def few(names: Sequence[str], most: int = 12) -> list[str]:
    """The first of very many, and how many others there are."""
    more = len(names) - most
    return [*names[:most], f"and {more:,} more"] if more > 1 else list(names)


def standing(summary: Summary) -> Standing:
    """The sentence that opens a report."""
    level, sentence = _judged(summary)
    if not summary.complete:
        why = summary.partial or "Partial: the run was cut, and this is what there was by then."
        return Standing(Level.FALLEN, f"{why} {sentence}")
    return Standing(level, sentence)


def _judged(summary: Summary) -> tuple[Level, str]:
    doubts = heard(summary)
    blocking = sum(doubt.blocking for doubt in doubts)
    if not summary.stages:
        why = "; ".join(dict.fromkeys(one.why for one in summary.left_out if one.no_arrival))
        return Level.FALLEN, f"Nothing was measured: {why}." if why else "Nothing was measured."
    if blocking:
        what = "a doubt forbids" if blocking == 1 else f"{blocking} doubts forbid"
        return Level.FALLEN, f"The numbers do not stand: {what} the headline."
    if doubts:
        return Level.DOUBTED, f"Nothing forbids these numbers; {counted(len(doubts), 'doubt')} to read beside them."
    return Level.STANDS, "The numbers stand: no doubt was raised."
