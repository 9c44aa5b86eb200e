"""A stage of a hunt that is over, and what of it matters to the rest of the hunt."""

import msgspec

from withstand.control.probe import Look, Standing, Told
from withstand.metrics.summary import StageSummary
from withstand.record import OUR_DOING, Status
from withstand.spec import Poisson, Stage

ALONE, CROWD, SEARCH, CHECK = "alone", "crowd", "search", "check"
_MANY = 5
_NO_FAULT = frozenset({Status.OK, Status.LIMITED}) | OUR_DOING
"""Good, refused by a limiter, or our own doing."""


class Tried(msgspec.Struct, frozen=True):
    """What one stage came to."""

    stage: Stage
    look: Look | None = None
    request_throughput: float | None = None
    e2el_s: float | None = None
    times: tuple[Told | None, ...] = ()
    asked: int = 0
    """Requests that the server could have answered."""
    answered: int = 1
    """Well."""
    failed: int = 0
    """Through a fault, and not a limiter's, nor ours."""
    output_tokens: int | None = None
    output_throughput: float | None = None

    @property
    def load(self) -> float:
        """Requests a second, or users at a time."""
        arrivals = self.stage.arrivals
        return arrivals.rate if isinstance(arrivals, Poisson) else float(self.stage.max_concurrency or 0)

    @property
    def is_suspicious(self) -> bool:
        """So much failed that the server may have died."""
        breaks = self.look is not None and self.look.standing is Standing.BREAKS
        return self.stage.phase != CHECK and self.failed >= _MANY and (breaks or self.failed >= self.answered)


def tried_of(
    stage: Stage, look: Look | None, summary: StageSummary | None, times: tuple[Told | None, ...] = ()
) -> Tried:
    """What is known of a stage; without its summary only what was found of its load."""
    if summary is None:
        return Tried(stage, look, times=times)
    mean_ms = summary.e2el.mean
    return Tried(
        stage,
        look,
        request_throughput=summary.request_throughput,
        e2el_s=mean_ms / 1e3 if mean_ms is not None else None,
        times=times,
        asked=sum(count for status, count in summary.statuses.items() if status not in OUR_DOING),
        answered=summary.completed,
        failed=sum(count for status, count in summary.statuses.items() if status not in _NO_FAULT),
        output_tokens=summary.total_output_tokens,
        output_throughput=summary.output_throughput,
    )
