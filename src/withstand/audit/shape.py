"""What an audit comes to: files, their runs, and for each run the claims that people quote, each standing or not."""

from enum import StrEnum

import msgspec

from withstand.metrics.doubts import Doubt
from withstand.metrics.reach import Circumstances


class Standing(StrEnum):
    """How far something can be believed."""

    STANDS = "stands"
    PARTLY = "partly"
    """Of a run or file: one of its leading claims stands, another does not."""
    FALLS = "falls"
    UNKNOWN = "unknown"
    """It may be right; nobody can know it from this."""


class Claim(StrEnum):
    """The numbers that are quoted from a benchmark."""

    TTFT = "ttft"
    TTFT_P99 = "ttft_p99"
    TPOT = "tpot"
    ITL = "itl"
    E2EL = "e2el"
    REQUESTS = "requests"
    TOKENS = "tokens"
    SUCCESS = "success"

    @property
    def number(self) -> str:
        """As ``metrics.reach`` names it."""
        return _NUMBERS[self]


TIMES = frozenset({Claim.TTFT, Claim.TTFT_P99, Claim.TPOT, Claim.ITL, Claim.E2EL})
_NUMBERS = {
    Claim.TTFT: "ttft",
    Claim.TTFT_P99: "ttft.p99",
    Claim.TPOT: "tpot",
    Claim.ITL: "itl",
    Claim.E2EL: "e2el",
    Claim.REQUESTS: "request_throughput",
    Claim.TOKENS: "output_throughput",
    Claim.SUCCESS: "success_rate",
}


class Value(msgspec.Struct, frozen=True):
    """A number as it is quoted: which statistic it is, and its unit."""

    value: float
    which: str
    """``p50``, ``mean``, ``share`` …; empty for a rate."""
    unit: str


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One run or stage before its judge: what it claims, and what there is to doubt."""

    name: str
    n: int | None
    """Good answers; None = the file does not tell."""
    circumstances: Circumstances
    values: dict[Claim, Value]
    doubts: tuple[Doubt, ...]
    joint: tuple[Doubt, ...] = ()
    """What the runs of its series show together."""


class Finding(msgspec.Struct, frozen=True):
    """One claim of one run."""

    claim: Claim
    value: Value
    standing: Standing
    because: tuple[str, ...] = ()
    """Kinds of the doubts that take it away."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One run, judged."""

    name: str
    standing: Standing
    findings: tuple[Finding, ...]
    doubts: tuple[Doubt, ...]


class FileAudit(msgspec.Struct, frozen=True, kw_only=True):
    """One file or folder. ``unreadable`` says why there is nothing else."""

    path: str
    form: str = ""
    """``vLLM JSON, 12 runs, aggregates``."""
    standing: Standing
    headline: str
    cases: tuple[Case, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    """Those that only several of its runs show."""
    left_out: tuple[str, ...] = ()
    unreadable: str | None = None


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was asked about."""

    standing: Standing
    files: tuple[FileAudit, ...]
    doubts: tuple[Doubt, ...] = ()
    """Those that only several files show together."""
    left_out: tuple[str, ...] = ()
    """Of files that lie beside runs of ours and only look like results."""
