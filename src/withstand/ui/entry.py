"""One line of the list, and what stands behind it. Plain data as the page gets it; text from outside is one line."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

import msgspec

from withstand.wire.reply import one_line

TEXT_MAX = 300


class Kind(StrEnum):
    """What lies at a place."""

    RUN = "run"
    SEARCH = "search"
    """A run that looks for a limit."""
    IMPORT = "import"
    FILE = "file"
    """Another tool's result file."""
    COMPARISON = "comparison"
    """A folder with a page that compares."""


class State(StrEnum):
    """How far it is."""

    RUNNING = "running"
    DONE = "done"
    PARTIAL = "partial"
    FAILED = "failed"
    DAMAGED = "damaged"
    NOTHING = "nothing_known"
    """It went to its end, and nothing is known from it: no good answer, or no limit."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line. None = not known, or there is no such thing."""

    id: str
    name: str
    kind: Kind
    state: State
    at_s: float
    """When it began, since 1970."""
    why: str | None = None
    """Why it is not whole: one sentence."""
    tool: str | None = None
    target: str | None = None
    model: str | None = None
    stages: int | None = None
    stages_done: int | None = None
    requests: int | None = None
    failed: int | None = None
    cut: int | None = None
    """Those that we ended ourselves, as at the end of a budget, or of a load that is known."""
    request_rate: float | None = None
    """The most answers a second of any stage."""
    token_rate: float | None = None
    """The most output tokens a second of any stage."""
    ttft_p95_ms: float | None = None
    """At the stage with the most answers a second."""
    doubts: int | None = None
    """Kinds of them."""
    blocking: int = 0
    slo_kept: bool | None = None
    limit: str | None = None
    """What a search has found: one sentence."""
    headline: str | None = None
    """What a comparison comes to: one sentence."""
    block_of: str | None = None
    """The id of the comparison of two sides in turn that this run is a block of."""
    page: str | None = None
    """The name of the report, or comparison, that lies in the folder."""
    board: str | None = None
    """As ``page``: what a stack's monitoring saw."""


class StageLine(msgspec.Struct, frozen=True, kw_only=True):
    """One stage."""

    name: str
    state: str | None = None
    requests: int | None = None
    failed: int | None = None
    cut: int | None = None
    request_rate: float | None = None
    token_rate: float | None = None
    ttft_p50_ms: float | None = None
    ttft_p95_ms: float | None = None
    tpot_p50_ms: float | None = None
    tpot_p95_ms: float | None = None
    e2el_p95_ms: float | None = None


class DoubtLine(msgspec.Struct, frozen=True, kw_only=True):
    """One doubt, and where it was raised."""

    kind: str
    sentence: str
    remedy: str
    blocking: bool
    stage: str | None = None


class Doubting(Protocol):
    """A doubt as it was raised, or as a file tells it."""

    @property
    def kind(self) -> str:
        """Of a closed set."""

    @property
    def sentence(self) -> str:
        """What a user reads."""

    @property
    def remedy(self) -> str:
        """What to do."""

    @property
    def blocking(self) -> bool:
        """Whether nothing can be concluded."""


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """A line with all that is behind it."""

    entry: Entry
    stages: tuple[StageLine, ...] = ()
    doubts: tuple[DoubtLine, ...] = ()


def shown(text: str | None) -> str | None:
    """A stranger's text: one line, nothing that turns the direction of writing, not endless."""
    return None if text is None else one_line(text, TEXT_MAX)


def best(values: list[float | None]) -> float | None:
    """The largest that is known."""
    return max((value for value in values if value is not None), default=None)


def at_best_rate(pairs: Iterable[tuple[float | None, float | None]]) -> float | None:
    """Of (answers a second, p95 of TTFT) the second where the first is largest."""
    known = [(rate, ttft_ms) for rate, ttft_ms in pairs if rate is not None]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def doubt_lines(raised: Iterable[tuple[str | None, Doubting]]) -> tuple[DoubtLine, ...]:
    """Each with the stage that it was raised of; None = the whole."""
    return tuple(
        DoubtLine(
            kind=shown(doubt.kind.replace("_", " ")) or "",
            sentence=shown(doubt.sentence) or "",
            remedy=shown(doubt.remedy) or "",
            blocking=doubt.blocking,
            stage=shown(stage),
        )
        for stage, doubt in raised
    )
