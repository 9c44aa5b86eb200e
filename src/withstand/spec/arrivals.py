"""WHEN requests are planned: one small struct a process, told apart by ``kind``.

``inf`` plans everything for the stage's start; together with a ``max_concurrency`` it is the closed loop.
"""

from typing import Annotated

import msgspec

SECONDS_MAX = 1e7
RATE_MAX = 1e9
RATE_MIN = 1e-6
Rate = Annotated[float, msgspec.Meta(ge=RATE_MIN, le=RATE_MAX)]
RateOrPause = Annotated[float, msgspec.Meta(ge=0, le=RATE_MAX)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=SECONDS_MAX)]


class Inf(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="inf"):
    """No schedule: send as soon as a slot is free, or all at once where there is no cap."""


class Constant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="constant"):
    """One request every 1 / ``rate`` seconds."""

    rate: Rate


class Poisson(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="poisson"):
    """Independent users: exponential gaps with mean 1 / ``rate``."""

    rate: Rate


class Gamma(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="gamma"):
    """Gamma gaps with mean 1 / ``rate`` and shape ``burstiness``: below 1 burstier than Poisson, above 1 steadier."""

    rate: Rate
    burstiness: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1.0


class Ramp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="ramp"):
    """A rate that moves from ``start_rate`` to ``end_rate`` over ``duration_s`` and then stays."""

    start_rate: RateOrPause
    end_rate: Rate
    duration_s: Seconds
    shape: Annotated[str, msgspec.Meta(pattern="^(linear|exponential)$")] = "linear"
    poisson: bool = True


class StepPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One plateau of a step process; rate 0 is a pause."""

    rate: RateOrPause
    duration_s: Seconds


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="step"):
    """Plateaus one after another."""

    parts: Annotated[tuple[StepPart, ...], msgspec.Meta(min_length=1)]
    poisson: bool = True


class Trace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="trace"):
    """The dataset's own times, played ``speed`` times as fast."""

    speed: Annotated[float, msgspec.Meta(gt=0, le=1e9)] = 1.0


Arrivals = Inf | Constant | Poisson | Gamma | Ramp | Step | Trace


def rate_rps_of(arrivals: Arrivals) -> float | None:
    """The one rate that a process has, in requests a second; None where it has none or several."""
    return arrivals.rate if isinstance(arrivals, Constant | Poisson | Gamma) else None
