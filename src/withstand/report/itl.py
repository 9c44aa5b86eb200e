"""The ITL's other forms, in a line each, where a reader of the table's would be misled: they say something else."""

from collections.abc import Iterator

from withstand.metrics.summary import Distribution, StageSummary, Summary
from withstand.report.numbers import number

_FORMS = {"itl_per_token": "ITL per token", "itl_request_mean": "ITL, mean of a request"}
_APART = 0.05
"""Of the ITL's median."""


def itl_lines(summary: Summary) -> Iterator[str]:
    """``ITL per token, p50 / p99 in ms: rate-4 5.00 / 6.21``; nothing where no stage's differs from the ITL."""
    for name, title in _FORMS.items():
        forms: list[tuple[StageSummary, Distribution]] = [(stage, getattr(stage, name)) for stage in summary.stages]
        told = [f"{stage.name} {_middle_and_tail(form)}" for stage, form in forms if _differs(stage.itl, form)]
        if told:
            yield f"{title}, p50 / p99 in ms: {'; '.join(told)}"


def _differs(itl: Distribution, form: Distribution) -> bool:
    shown_ms, other_ms = itl.percentiles.get("p50"), form.percentiles.get("p50")
    return shown_ms is not None and other_ms is not None and abs(other_ms - shown_ms) > _APART * shown_ms


def _middle_and_tail(form: Distribution) -> str:
    return " / ".join(number(form.percentiles.get(key)) for key in ("p50", "p99"))
