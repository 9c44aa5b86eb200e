"""What a stage will ask of the client at its height, as far as its plan tells. Pure."""

import msgspec

from withstand.app.stages import connections_of
from withstand.metrics.calibration import Capacity
from withstand.spec import Arrivals, Ramp, Stage, Step, rate_rps_of
from withstand.workload.datasets import random

_HEAVY_TOKENS_PER_S = 10_000
_HEAVY_RPS = 2_000
_HEAVY_STREAMS = 1_000


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """Of one stage; None = the plan does not tell."""

    streamed: bool
    rate_rps: float | None = None
    tokens_per_s: float | None = None
    streams: int | None = None
    """Answers at once, where only their number is told and their rate is the server's business."""

    @property
    def heavy(self) -> bool:
        """Whether it is worth finding out what this machine can carry."""
        return (
            (self.tokens_per_s or 0) > _HEAVY_TOKENS_PER_S
            or (self.rate_rps or 0) > _HEAVY_RPS
            or (self.streams or 0) >= _HEAVY_STREAMS
        )

    def workers(self, capacity: Capacity) -> int | None:
        """The fewest that carry it; None = that does not follow from what is known."""
        known = capacity.tokens_per_s if self.streamed else capacity.requests_per_s
        told = self.tokens_per_s or self.streams if self.streamed else self.rate_rps
        if not known or not told:
            return None
        return capacity.workers_for(
            rate_rps=self.rate_rps or 0.0, tokens_per_s=self.tokens_per_s or 0.0, streams=self.streams or 0
        )


def demand_of(stage: Stage, *, streamed: bool) -> Demand:
    """What is known beforehand."""
    rate_rps = _peak_rps(stage.arrivals)
    if rate_rps is None:
        return Demand(streamed=streamed, streams=connections_of(stage))
    output_len = _output_len(stage)
    tokens_per_s = rate_rps * output_len if streamed and output_len else None
    return Demand(streamed=streamed, rate_rps=rate_rps, tokens_per_s=tokens_per_s)


def _peak_rps(arrivals: Arrivals) -> float | None:
    if isinstance(arrivals, Ramp):
        return max(arrivals.start_rate, arrivals.end_rate)
    if isinstance(arrivals, Step):
        return max(part.rate for part in arrivals.parts)
    return rate_rps_of(arrivals)


def _output_len(stage: Stage) -> int | None:
    """Tokens of an answer, where the plan sets them; ``random`` is the dataset of whoever names none."""
    assert stage.workload is not None
    default = random.Options().output_len if stage.workload.dataset == "random" else None
    asked = stage.workload.options.get("output_len", default)
    return asked if isinstance(asked, int) else None
