"""What a run folder says of itself: the plan, the machine, each stage's fate. Never a secret, never a result."""

from enum import StrEnum

import msgspec

from withstand.clock import Anchor
from withstand.control.probe import Look
from withstand.record import Health, Outage
from withstand.spec import Plan, Stage

# Schema history
# 1  2026-11  the first
SCHEMA = 1


class RunState(StrEnum):
    """Of a run or a stage."""

    PLANNED = "planned"
    RUNNING = "running"
    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    """A stage that was cut and has been run again; its records count nowhere."""
    LEFT_OUT = "left_out"
    """It did not fit into what was left of the budget."""
    TOO_LONG = "too_long"
    """The server takes no requests so long, and the plan says to leave such stages out."""
    TOO_HEAVY = "too_heavy"
    """A lighter stage was too much for the server, and the plan says to leave heavier ones out."""


NOT_MISSED = frozenset({RunState.SUPERSEDED, RunState.TOO_LONG, RunState.TOO_HEAVY})
"""Of a stage: a run without it is whole."""


class TokenizerFacts(msgspec.Struct, frozen=True):
    """Who counted tokens."""

    name: str
    exact: bool


class StageEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One execution of one stage; records point at it by its place in the list."""

    name: str
    stage: Stage
    place: int = 0
    """Where the plan has it; a stage that is run again keeps its place."""
    state: RunState = RunState.PLANNED
    started_ns: int | None = None
    ended_ns: int | None = None
    """Both since the run's epoch."""
    planned_requests: int | None = None
    identical_prompts: int = 0
    fixed_lengths: bool = False
    texts_by: TokenizerFacts | None = None
    """Who counted the tokens of the answers' texts; None = nobody did."""
    health: tuple[Health, ...] = ()
    error: str | None = None
    ended_by: str | None = None
    """What ended it before its limit, in half a sentence."""
    cut_short: str | None = None
    """Why it is shorter than its plan where nobody asked for that; in half a sentence."""
    too_much: bool = False
    """It ended because the server has more than it can do."""
    ready_s: float | None = None
    """How long the server took until it answered, where it was started anew for this stage."""
    look: Look | None = None
    """Of a load that was tried: whether its promises are kept. The next load was chosen by it."""

    @property
    def had_no_arrival(self) -> bool:
        """It went to its end, and nothing was due while it lasted."""
        return self.state is RunState.DONE and self.planned_requests == 0


class Writer(msgspec.Struct, frozen=True):
    """The process that writes the folder: a reader can tell a crash from a run that goes on."""

    pid: int
    started: str | None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """``run.json``."""

    schema: int = SCHEMA
    version: str
    created_utc: str
    anchor: Anchor
    plan: Plan
    argv: tuple[str, ...] = ()
    state: RunState = RunState.RUNNING
    writer: Writer
    machine: dict[str, str] = {}
    engine: dict[str, str] | None = None
    engine_ready_s: float | None = None
    """How long the engine that we started ourselves took until it answered."""
    target: str | None = None
    model: str | None = None
    tokenizer: TokenizerFacts | None = None
    """The prompts'."""
    stages: tuple[StageEntry, ...] = ()
    outages: tuple[Outage, ...] = ()
    """Of services of the stack that is measured."""
    notes: tuple[str, ...] = ()
    """What a reader should know besides: a sentence each."""
    error: str | None = None
    spent_ns: int = 0
    """How long stages have been measured so far, all sittings together: what a budget is charged with."""

    def in_order(self) -> list[tuple[int, StageEntry]]:
        """The stages as the plan has them, each with its index in the list."""
        return sorted(enumerate(self.stages), key=lambda pair: (pair[1].place, pair[0]))
