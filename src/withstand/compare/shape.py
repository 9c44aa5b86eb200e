"""What a comparison comes to. Plain values: whoever shows them (text, page, Markdown, JSON) computes nothing.

Sides are compared at equal conditions only: a Group is one set of conditions, a Row one metric under them. The first
side is the baseline that differences refer to. Times are ms, rates per second; None = not known.
"""

from enum import StrEnum

import msgspec

from withstand.metrics.doubts import Doubt
from withstand.metrics.summary import Interval
from withstand.spec import TokenPrice


class Verdict(StrEnum):
    """What may be said of a side against the baseline."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no_difference"
    """None that this data can show."""
    UNKNOWN = "unknown"
    """The numbers stand there, and nothing can be concluded from them; ``Row.remark`` says why."""


SHOWN = (Verdict.BETTER, Verdict.WORSE)
"""Those that tell a difference."""


class Method(StrEnum):
    """How an interval came about."""

    REPEATS = "repeats"
    """Runs were repeated: Welch's test over runs."""
    PAIRS = "pairs"
    """Measured in turn: over pairs of blocks, without drift."""
    BLOCKS = "blocks"
    """Single runs with facts: blocks of requests over time."""
    NONE = "none"
    """Aggregates only: no interval can be had."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the things that are compared."""

    label: str
    """Short, unique, as it stands in tables: a file's or folder's name, the engine, or what the user called it."""
    sources: tuple[str, ...]
    """Files or folders, several where a run was repeated."""
    tool: str
    model: str | None = None
    price_per_hour: float | None = None
    """As its runs were told; None = not told, or not alike."""
    token_price: TokenPrice | None = None
    """What they were told that tokens cost elsewhere; None = not told, or not alike."""
    facts: bool
    empty: tuple[str, ...] = ()
    """Sources in which nothing was measured."""
    doubts: tuple[Doubt, ...] = ()
    """Those that block, of its runs that are compared."""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One side's value in a row."""

    value: float | None
    interval: Interval | None = None
    """Of 95 %, dependence between requests taken into account; None = cannot be had."""
    n: int | None = None
    """Values behind it."""
    runs: int = 1
    doubts: tuple[Doubt, ...] = ()
    """Those of this side at these conditions that touch this metric."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A side against the baseline."""

    percent: float | None
    """(side - baseline) / baseline * 100."""
    interval: Interval | None = None
    """Of ``percent``, 95 %."""
    own_error_percent: float = 0.0
    """So much of it our own slowness may have made, where that is in question; ``interval`` holds it."""
    left_percent: float | None = None
    """Of ``percent``, what our own slowness cannot have made."""
    method: Method
    chance: float | None = None
    """Of a difference at least as large where there is none (p), corrected for the number of comparisons (Holm)."""
    verdict: Verdict
    shows_from_percent: float | None = None
    """The smallest difference that as much data shows in nine cases of ten; None = not known."""
    enough: str | None = None
    """How much longer, or how often, to measure so that a difference of this size would be seen; None = seen."""

    @property
    def is_negligible(self) -> bool:
        """It is shown, and too small to matter."""
        shown = self.chance is not None and self.chance <= 0.05 and bool(self.percent)
        return shown and self.verdict is Verdict.NO_DIFFERENCE

    @property
    def is_chance_of_many(self) -> bool:
        """By itself it would be shown: its interval leaves 0 out, and so many were tested that one does by chance."""
        ends = self.interval
        apart = ends is not None and ((ends.low or 0.0) > 0 or (ends.high or 0.0) < 0)
        return apart and self.chance is not None and self.chance > 0.05


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One metric at one set of conditions. ``cells`` and ``differences`` are in the order of the sides."""

    metric: str
    """A key of the catalogue, with its statistic: ``ttft.mean``, ``ttft.p99``, ``output_throughput``."""
    title: str
    """``Mean TTFT``."""
    unit: str
    lower_is_better: bool | None
    cells: tuple[Cell, ...]
    fastest: int | None
    """Index of the side with the best value, whatever can be concluded; None = a value is missing, or all are equal.

    Of pairs, the side that is best by their differences.
    """
    faster_by_percent: float | None
    """(worst - best) / worst * 100 for times, (best - worst) / best * 100 for throughputs, from unrounded values."""
    differences: tuple[Difference | None, ...]
    """None for the baseline itself."""
    because: tuple[Doubt, ...] = ()
    """Doubts that forbid a verdict, the one that says most first."""
    lacks: tuple[str, ...] = ()
    """What else there is not enough of for a verdict, a sentence each."""
    cautions: tuple[str, ...] = ()
    """How a verdict that was given is to be taken."""
    remark: str | None = None
    """The first doubt, the lacks and the cautions as one text."""


class Volume(msgspec.Struct, frozen=True, kw_only=True):
    """How much one side did at one set of conditions, over all its runs there."""

    attempted: int | None = None
    completed: int | None = None
    duration_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    runs: int = 1
    unanswered: int = 0
    """Runs among them without a single good answer."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Equal conditions."""

    label: str
    """``5 req/s``, ``concurrency 8``, ``inf``."""
    rate: float | None = None
    """Offered; None = inf or a closed loop."""
    concurrency: int | None = None
    phase: str | None = None
    """Of our own plans: another phase is another course."""
    conditions: dict[str, str] = {}
    """What all sides share here: model, lengths, dataset, prompts …"""
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()
    """What differs although it was forced, what else is doubtful about the whole group."""
    volumes: tuple[Volume, ...] = ()
    """In the order of the sides; empty = not told."""


class Unmatched(msgspec.Struct, frozen=True):
    """Something that has no partner, or that must not be compared."""

    side: int
    what: str
    why: str


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the sides may pass: ``failed`` where too large a regression is shown, or a side gave nothing."""

    failed: bool
    sentence: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    sides: tuple[Side, ...]
    groups: tuple[Group, ...]
    unmatched: tuple[Unmatched, ...] = ()
    forced: bool = False
    """The user insisted although conditions differ; every reader is told."""
    headline: str
    """One sentence: what can be concluded."""
    doubts: tuple[Doubt, ...] = ()
    """Of the comparison itself."""
    aim_percent: float | None = None
    """The size of difference that the user does not want to miss; None = nobody has said."""
    gate: Gate | None = None
    """None where nobody asked for one."""
    method: str
    """A paragraph for the reader: how intervals and verdicts came about here."""


class Objection(msgspec.Struct, frozen=True):
    """Something that stands against a decision, in a few words; whoever shows it refers to where it is said in full."""

    remark: str
    """``Rate not achieved at 30 req/s, 35 req/s``"""
    doubts: tuple[Doubt, ...] = ()
    note: str | None = None
    """The whole sentence, where it is no doubt."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the decision table: what is best for one purpose, and how far that holds."""

    wins_for: str
    """``lowest TTFT``, ``lowest TPOT``, ``throughput``, ``tail``, ``cost``, ``success``, ``cheaper than tokens``."""
    winner: str | None
    """A side's label; None = nothing can be concluded."""
    evidence: str
    against: tuple[Objection, ...] = ()
