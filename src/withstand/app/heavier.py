"""Which of two stages loads a server more, where nothing else is different. Pure."""

import math

import msgspec

from withstand.spec import Stage, rate_rps_of


def is_heavier(stage: Stage, other: Stage) -> bool:
    """Whether it asks the same with a higher rate, more at once, or both."""
    load, light = _load(stage), _load(other)
    return _else(stage) == _else(other) and load != light and all(a >= b for a, b in zip(load, light, strict=True))


def _load(stage: Stage) -> tuple[float, float]:
    """(Requests a second, at once): without a number there is no end to it."""
    return rate_rps_of(stage.arrivals) or math.inf, stage.max_concurrency or math.inf


def _else(stage: Stage) -> tuple[object, ...]:
    """What must be alike: what is sent, and how it comes, but for the rate."""
    comes = msgspec.to_builtins(stage.arrivals)
    comes.pop("rate", None)
    return stage.workload, comes
