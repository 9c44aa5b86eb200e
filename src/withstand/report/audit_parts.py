"""What every form of an audit says in the same words: headlines, marks, doubts with their arithmetic, values."""

from collections.abc import Iterator, Sequence

import msgspec

from withstand.audit.shape import Audit, Claim, FileAudit, Finding, Standing
from withstand.audit.words import listed
from withstand.report.numbers import number
from withstand.report.standing import Heard, gathered

TITLES = {
    Standing.STANDS: "STANDS",
    Standing.PARTLY: "STANDS IN PART",
    Standing.FALLS: "DOES NOT STAND",
    Standing.UNKNOWN: "CANNOT BE KNOWN",
}
MARKS = {Standing.STANDS: "✓", Standing.FALLS: "✗", Standing.UNKNOWN: "?", Standing.PARTLY: "~"}
LEGEND = "✓ can be quoted   ✗ does not stand   ? nobody can know   blank: not told"
UNITS = {
    **dict.fromkeys((Claim.TTFT, Claim.TTFT_P99, Claim.TPOT, Claim.ITL, Claim.E2EL), "ms"),
    Claim.REQUESTS: "",
    Claim.TOKENS: "",
    Claim.SUCCESS: "%",
}
"""Rates have it in their name."""
_SENTENCES_MAX = 3
_SMALL = 0.1


class Said(msgspec.Struct, frozen=True):
    """One kind of doubt: its sentences, each with where it holds, and the remedy."""

    mark: str
    blocking: bool
    sentences: tuple[tuple[str, str], ...]
    """(sentence, where); where is empty for the whole."""
    remedy: str


def doubts_of(file: FileAudit) -> tuple[Said, ...]:
    """All doubts of a file, those of its runs together first."""
    together = [(doubt, None) for doubt in file.doubts]
    single = [(doubt, case.name) for case in file.cases for doubt in case.doubts]
    alone = len(file.cases) == 1
    return tuple(_said(heard, alone=alone) for heard in gathered([*together, *single]))


def doubts_between(audit: Audit) -> tuple[Said, ...]:
    """What only several files show."""
    return tuple(_said(heard, alone=True) for heard in gathered([(doubt, None) for doubt in audit.doubts]))


def _said(heard: Heard, *, alone: bool) -> Said:
    return Said("✗" if heard.blocking else "?", heard.blocking, tuple(_sentences(heard, alone=alone)), heard.remedy)


def _sentences(heard: Heard, *, alone: bool) -> Iterator[tuple[str, str]]:
    """Few cases are all written out; of many the first, and the names of the others."""
    if len(heard.cases) <= _SENTENCES_MAX:
        for case in heard.cases:
            yield case.sentence, "" if alone else listed(case.stages)
        return
    first, *others = heard.cases
    names = [name for case in others for name in case.stages]
    yield first.sentence, f"{listed(first.stages)}; alike at {listed(names)}"


def claims_told(file: FileAudit) -> tuple[Claim, ...]:
    """The claims that any run of a file makes."""
    told = {finding.claim for case in file.cases for finding in case.findings}
    return tuple(claim for claim in Claim if claim in told)


def statistic(file: FileAudit, claim: Claim) -> str:
    """``p50``, ``mean``, or nothing where the runs differ or it is a rate."""
    found = {f.value.which for case in file.cases for f in case.findings if f.claim is claim}
    which = found.pop() if len(found) == 1 else ""
    return "" if which == "p99" else which


def cell(findings: Sequence[Finding], claim: Claim) -> tuple[str, Standing] | None:
    """A claim's value and how it stands; None = not told."""
    finding = next((finding for finding in findings if finding.claim is claim), None)
    return None if finding is None else (_figure(finding.value.value), finding.standing)


def _figure(value: float) -> str:
    """A slow server's 0.0013 req/s is not 0.00."""
    return f"{value:.2g}" if 0 < value < _SMALL else number(value)
