"""What a run's numbers mean for the exit code: 0 good, 1 an SLO was missed, 3 it could not be measured."""

from collections.abc import Collection

from withstand.metrics.doubts import DoubtKind
from withstand.metrics.rates import good_share, has_limits
from withstand.metrics.rounding import percent
from withstand.metrics.summary import Summary
from withstand.report.standing import heard, standing
from withstand.runs import Manifest

GOOD, MISSED, NOT_MEASURED = 0, 1, 3


def exit_code(summary: Summary, manifest: Manifest, beside: Collection[DoubtKind] = ()) -> int:
    """Of the whole run; ``beside``: doubts that are weighed elsewhere."""
    if not_measured(summary, beside):
        return NOT_MEASURED
    return MISSED if missed_slo(summary, manifest) else GOOD


def code_of_all(codes: Collection[int]) -> int:
    """Of several runs that belong together."""
    if set(codes) - {GOOD, MISSED}:
        return NOT_MEASURED
    return MISSED if MISSED in codes else GOOD


def not_measured(summary: Summary, beside: Collection[DoubtKind] = ()) -> str | None:
    """One sentence on why the headline cannot stand; None = it can. ``beside``: doubts that are weighed elsewhere."""
    if not summary.complete:
        return summary.partial or standing(summary).sentence
    forbid = [doubt.kind.spoken for doubt in heard(summary) if doubt.blocking and doubt.kind not in beside]
    if forbid:
        return f"{standing(summary).sentence.rstrip('.')} ({', '.join(forbid)})."
    return None if summary.stages else standing(summary).sentence


def missed_slo(summary: Summary, manifest: Manifest) -> str | None:
    """One sentence on the stages that missed it; None = none did."""
    slo = manifest.plan.goodput
    missed = [f"{s.name} ({percent(good_share(s))})" for s in summary.stages if good_share(s) < slo.share]
    if not has_limits(slo) or not missed:
        return None
    return f"The SLO was missed: fewer than {percent(slo.share)} of the requests were good at {', '.join(missed)}."
