"""The judgement: claims from doubts, a run from its leading claims, a file from its runs, all from the files.

A run leads with a latency (TTFT, else E2EL) and a throughput (tokens, else requests). It falls with a blocking doubt,
with a tok/s that is none, or when all that is known of its leads falls; it stands in part when one lead stands and the
other does not, or cannot be known.
"""

from collections.abc import Iterable, Sequence

from withstand.audit.shape import TIMES, Audit, Case, Claim, FileAudit, Finding, Standing, Subject, Value
from withstand.audit.words import CLAIM_TITLES, listed
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.quantiles import TELLING
from withstand.metrics.reach import Effect, effect

_OF_ALL_RUNS = frozenset({DoubtKind.NOT_STREAMED, DoubtKind.FLAT_THROUGHPUT})
"""Raised by several runs together, these hold for each of them."""
_LEADS = ((Claim.TTFT, Claim.E2EL), (Claim.TOKENS, Claim.REQUESTS))


def judge(subject: Subject) -> Case:
    """One run, by its own doubts and by those of its series that hold for each of its runs."""
    doubts = (*subject.doubts, *(doubt for doubt in subject.joint if doubt.kind in _OF_ALL_RUNS))
    findings = tuple(_finding(subject, claim, doubts) for claim in Claim if claim in subject.values)
    return Case(
        name=subject.name,
        standing=_standing_of(findings, blocked=any(doubt.blocking for doubt in subject.doubts)),
        findings=findings,
        doubts=subject.doubts,
    )


def _finding(subject: Subject, claim: Claim, doubts: Sequence[Doubt]) -> Finding:
    value = subject.values[claim]
    number = _number(claim, value)
    effects = [(effect(doubt, number, subject.circumstances), doubt.kind.value) for doubt in doubts]
    against = tuple(kind for found, kind in effects if found is Effect.FALLS)
    if against:
        return Finding(claim, value, Standing.FALLS, against)
    unsure = tuple(kind for found, kind in effects if found is Effect.UNKNOWN)
    if unsure or _of_too_few(subject, claim):
        return Finding(claim, value, Standing.UNKNOWN, unsure)
    return Finding(claim, value, Standing.STANDS)


def _number(claim: Claim, value: Value) -> str:
    """What the claim quotes: where that is left open, the statistic that was told."""
    told = value.which if claim in TIMES and claim is not Claim.TTFT_P99 else ""
    return f"{claim.number}.{told}" if told else claim.number


def _of_too_few(subject: Subject, claim: Claim) -> bool:
    """A handful of answers has no median and no rate, and a p99 of nobody knows how many is nobody's."""
    if subject.n is None:
        return claim is Claim.TTFT_P99
    return claim is not Claim.SUCCESS and subject.n < TELLING


def _standing_of(findings: Sequence[Finding], *, blocked: bool) -> Standing:
    by_claim = {finding.claim: finding.standing for finding in findings}
    found = [next((by_claim[claim] for claim in lead if claim in by_claim), None) for lead in _LEADS]
    leads = [standing for standing in found if standing is not None]
    if blocked or by_claim.get(Claim.TOKENS) is Standing.FALLS:
        return Standing.FALLS
    return _together(leads)


def _together(parts: Sequence[Standing]) -> Standing:
    """All that is known falls; all stand; else some do, or can be known."""
    known = [part for part in parts if part is not Standing.UNKNOWN]
    if not known:
        return Standing.UNKNOWN
    if all(part is Standing.FALLS for part in known):
        return Standing.FALLS
    return Standing.STANDS if all(part is Standing.STANDS for part in parts) else Standing.PARTLY


def judge_file(
    path: str,
    form: str,
    subjects: Iterable[Subject],
    doubts: tuple[Doubt, ...],
    left_out: tuple[str, ...] = (),
    *,
    noun: str = "runs",
) -> FileAudit:
    """A file from its runs, or stages: it falls with one of them, or with what only all of them show."""
    cases = tuple(map(judge, subjects))
    standing = _of_cases(cases, doubts)
    return FileAudit(
        path=path,
        form=form,
        standing=standing,
        headline=_headline(cases, doubts, noun),
        cases=cases,
        doubts=doubts,
        left_out=left_out,
    )


def _of_cases(cases: Sequence[Case], doubts: Sequence[Doubt]) -> Standing:
    standings = {case.standing for case in cases}
    if any(doubt.blocking for doubt in doubts) or Standing.FALLS in standings:
        return Standing.FALLS
    return _together([*standings])


def unreadable(path: str, why: str) -> FileAudit:
    """A file without anything to judge."""
    return FileAudit(
        path=path, standing=Standing.UNKNOWN, headline="Cannot be read: nothing is known of it.", unreadable=why
    )


def _headline(cases: Sequence[Case], doubts: Sequence[Doubt], noun: str) -> str:
    if len(cases) == 1:
        return _of_one(cases[0])
    by_standing = {
        standing: [case.name for case in cases if case.standing is standing]
        for standing in (Standing.FALLS, Standing.PARTLY, Standing.UNKNOWN)
    }
    ends = (("does not stand", "do not stand"), ("stands in part", "stand in part"), ("cannot be known",) * 2)
    told = zip(by_standing.values(), ends, strict=True)
    said = [_part(names, f"{len(cases)} {noun}", end, whole=len(names) == len(cases)) for names, end in told if names]
    if any(doubt.blocking for doubt in doubts):
        said.append("what they say together does not hold")
    if not said:
        return "What leads here can be quoted." if cases else "Nothing was measured."
    return f"{said[0][0].upper()}{'; '.join(said)[1:]}."


def _of_one(case: Case) -> str:
    """Of a single run, claim by claim."""
    ends = (
        (Standing.FALLS, "does not stand", "do not stand"),
        (Standing.UNKNOWN, "cannot be known", "cannot be known"),
        (Standing.STANDS, "can be quoted", "can be quoted"),
    )
    said = []
    for standing, one, several in ends:
        titles = [CLAIM_TITLES[finding.claim] for finding in case.findings if finding.standing is standing]
        if titles:
            said.append(f"{', '.join(titles)} {one if len(titles) == 1 else several}")
    return f"{'; '.join(said)}." if said else "It tells no number that leads."


def _part(names: Sequence[str], of: str, ends: tuple[str, ...], *, whole: bool) -> str:
    """``of``: how many of what there are, ``2 stages``."""
    end = ends[0] if len(names) == 1 else ends[1]
    return f"all {of} {end}" if whole else f"{len(names)} of {of} {end} ({listed(names)})"


def judge_all(files: Sequence[FileAudit], doubts: tuple[Doubt, ...]) -> Audit:
    """All files. What they show only together says how far they compare, and takes no file's own numbers away."""
    standings = [file.standing for file in files]
    fallen = Standing.FALLS in standings
    return Audit(standing=Standing.FALLS if fallen else _together(standings), files=tuple(files), doubts=doubts)
