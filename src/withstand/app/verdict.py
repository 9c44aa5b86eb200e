"""What a run's numbers mean for the exit code: 0 good, 1 an SLO was missed, 3 it could not be measured."""

from withstand.metrics.rates import good_share, has_limits
from withstand.metrics.summary import Summary
from withstand.runs import Manifest

GOOD, MISSED, NOT_MEASURED = 0, 1, 3


def exit_code(summary: Summary, manifest: Manifest) -> int:
    """Of the whole run."""
    doubts = [*summary.doubts, *(d for s in summary.stages for d in s.doubts)]
    if not summary.complete or not summary.stages or any(d.blocking for d in doubts):
        return NOT_MEASURED
    slo = manifest.plan.goodput
    if has_limits(slo) and any(good_share(s) < slo.share for s in summary.stages):
        return MISSED
    return GOOD


def missed_slo(summary: Summary, manifest: Manifest) -> str:
    """One sentence on the stages that missed it."""
    share = manifest.plan.goodput.share
    missed = [f"{s.name} ({good_share(s):.1%})" for s in summary.stages if good_share(s) < share]
    return f"The SLO was missed: fewer than {share:.0%} of the requests were good at {', '.join(missed)}."
