"""What an examination comes to: a finding for each question, and all of them together."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

import msgspec

SCHEMA: Final = 1

Fact = str | int | float | bool | None


class Verdict(StrEnum):
    """From good to bad; what was not tried is neither."""

    OK = "ok"
    DOUBT = "doubt"
    WRONG = "wrong"
    NOT_TRIED = "not tried"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question."""

    check: str
    """Its name for programs: ``stream.shape``; what stands before the point is its chapter."""
    title: str
    verdict: Verdict
    said: str
    """What was seen, in one sentence without a full stop."""
    cure: str = ""
    """What to do about it, in one sentence; empty where nothing is to be done."""
    facts: dict[str, Fact] = {}

    @property
    def chapter(self) -> str:
        """``stream``."""
        return self.check.partition(".")[0]


class Question(msgspec.Struct, frozen=True):
    """One thing that is asked about; makes findings of itself."""

    check: str
    title: str

    def ok(self, said: str, **facts: Fact) -> Finding:
        """It is as it should be."""
        return Finding(check=self.check, title=self.title, verdict=Verdict.OK, said=said, facts=facts)

    def doubt(self, said: str, cure: str, **facts: Fact) -> Finding:
        """It may do harm, or cannot be told for sure."""
        return Finding(check=self.check, title=self.title, verdict=Verdict.DOUBT, said=said, cure=cure, facts=facts)

    def wrong(self, said: str, cure: str, **facts: Fact) -> Finding:
        """It is not as it must be."""
        return Finding(check=self.check, title=self.title, verdict=Verdict.WRONG, said=said, cure=cure, facts=facts)

    def not_tried(self, said: str, cure: str = "") -> Finding:
        """It could not be asked."""
        return Finding(check=self.check, title=self.title, verdict=Verdict.NOT_TRIED, said=said, cure=cure)


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """All findings about one path."""

    schema: int = SCHEMA
    version: str
    url: str
    model: str | None
    direct: str | None = None
    """The engine's own address, if it was asked beside the path."""
    echo: str | None = None
    """Where our echo engine stood behind the path."""
    created_utc: str
    took_s: float
    requests: int
    findings: tuple[Finding, ...]
    stopped: str | None = None
    """What kept us from asking on; None = all was asked."""

    def count(self, verdict: Verdict) -> int:
        """How many findings are so."""
        return sum(finding.verdict is verdict for finding in self.findings)

    def of(self, check: str) -> Finding | None:
        """The finding of one name."""
        return next((finding for finding in self.findings if finding.check == check), None)

    @property
    def bad(self) -> Iterator[Finding]:
        """What must be known beside every number that is measured over this path."""
        return _of((Verdict.WRONG,), self.findings)


def _of(verdicts: Iterable[Verdict], findings: Iterable[Finding]) -> Iterator[Finding]:
    return (finding for finding in findings if finding.verdict in verdicts)
