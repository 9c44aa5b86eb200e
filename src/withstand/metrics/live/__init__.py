"""What a run looks like while it goes on: records in, a ``Snapshot`` out; in bounded memory however many come."""

from withstand.metrics.live.now import LiveStage, Told
from withstand.metrics.live.progress import remaining_s, share_done
from withstand.metrics.live.sketch import Sketch
from withstand.metrics.live.snapshot import (
    METRICS,
    BracketNow,
    Current,
    ErrorNow,
    GoodNow,
    LatencyNow,
    Pace,
    Quantiles,
    ServerNow,
    Snapshot,
    StageNow,
)

__all__ = [
    "METRICS",
    "BracketNow",
    "Current",
    "ErrorNow",
    "GoodNow",
    "LatencyNow",
    "LiveStage",
    "Pace",
    "Quantiles",
    "ServerNow",
    "Sketch",
    "Snapshot",
    "StageNow",
    "Told",
    "remaining_s",
    "share_done",
]
