"""What every form of an audit says in the same words: headlines, marks, doubts with their arithmetic, values."""

from collections import Counter
from collections.abc import Sequence

from withstand.audit.shape import Audit, Claim, FileAudit, Finding, Standing
from withstand.report.numbers import number
from withstand.report.standing import Heard, gathered

TITLES = {
    Standing.STANDS: "STANDS",
    Standing.PARTLY: "STANDS IN PART",
    Standing.FALLS: "DOES NOT STAND",
    Standing.UNKNOWN: "CANNOT BE KNOWN",
}
MARKS = {Standing.STANDS: "✓", Standing.FALLS: "✗", Standing.UNKNOWN: "?", Standing.PARTLY: "~"}
LEGEND = "✓ can be quoted   ~ in part   ✗ falls   ? cannot be known   blank: not told"
UNITS = {
    **dict.fromkeys((Claim.TTFT, Claim.TTFT_P99, Claim.TPOT, Claim.ITL, Claim.E2EL), "ms"),
    Claim.REQUESTS: "",
    Claim.TOKENS: "",
    Claim.SUCCESS: "%",
}
"""Rates have it in their name."""
_ENDS = {
    Standing.FALLS: ("does not stand", "do not stand"),
    Standing.PARTLY: ("stands in part", "stand in part"),
    Standing.UNKNOWN: ("cannot be known", "cannot be known"),
    Standing.STANDS: ("stands", "stand"),
}
_SMALL = 0.1


def in_short(audit: Audit) -> str:
    """``11 files: 8 do not stand, 1 stands in part, 2 stand.``; nothing of a single one."""
    if len(audit.files) < 2:
        return ""
    counts = Counter(file.standing for file in audit.files)
    told = [f"{n} {_ENDS[standing][n > 1]}" for standing in _ENDS if (n := counts[standing])]
    return f"{len(audit.files)} files: {', '.join(told)}."


def doubts_of(file: FileAudit) -> tuple[Heard, ...]:
    """All doubts of a file, each kind once; where it has one run only, no place is named."""
    alone = len(file.cases) == 1
    single = [(doubt, None if alone else case.name) for case in file.cases for doubt in case.doubts]
    return gathered([*((doubt, None) for doubt in file.doubts), *single])


def doubts_between(audit: Audit) -> tuple[Heard, ...]:
    """What only several files show."""
    return gathered([(doubt, None) for doubt in audit.doubts])


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
