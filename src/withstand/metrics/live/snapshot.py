"""What a run looks like at one instant: plain data, which goes to a terminal, a web page, or as JSON anywhere.

Times are ms unless their names say else, rates are per second. None = not known. ``rolling`` is of the last ten
seconds; ``whole`` is of the stage, or, where somebody has begun to look in its middle, from then on.
"""

import msgspec

from withstand.metrics.doubts import Doubt
from withstand.metrics.server import Course

METRICS = ("ttft", "tpot", "itl", "e2el")


class StageNow(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of the plan."""

    index: int
    """As records have it."""
    name: str
    phase: str | None = None
    state: str
    """``planned``, ``running``, ``done`` and so on, as the manifest has it."""
    warmup: bool = False
    arrivals: str = "inf"
    """The process; ``inf`` with a ``max_concurrency`` is a closed loop."""
    rate_asked: float | None = None
    max_concurrency: int | None = None
    planned: int | None = None
    """Requests; None = only a duration ends it."""
    duration_s: float | None = None
    elapsed_s: float | None = None
    """None = it has not begun, or nobody knows when."""
    done: int | None = None
    """Requests that are over; None where nobody has counted."""
    share: float | None = None
    """How far it is, 0 to 1."""
    error: str | None = None


class Quantiles(msgspec.Struct, frozen=True):
    """In ms; off by 1.6 % at most. ITL: of some of each answer's gaps."""

    n: int
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    mean: float | None = None


class LatencyNow(msgspec.Struct, frozen=True):
    """One metric."""

    rolling: Quantiles
    whole: Quantiles
    course: tuple[float | None, ...] = ()
    """The median in each bin of ``Pace``; None where no answer ended."""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How it went, in at most 240 bins by the instants at which requests were over."""

    width_s: float
    start_s: float
    """Of the first bin, since the stage began."""
    ended: tuple[float, ...] = ()
    """Good answers a second."""
    failed: tuple[float, ...] = ()
    """A second."""
    output_tokens: tuple[float, ...] = ()
    """A second; an answer's tokens count when it ends."""


class ErrorNow(msgspec.Struct, frozen=True):
    """One way to fail."""

    status: str
    count: int
    text: str | None = None
    """What was said the first time."""


class GoodNow(msgspec.Struct, frozen=True):
    """Which share of the requests that were over kept all limits."""

    rolling: float | None
    whole: float | None


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """The stage that goes on."""

    index: int
    name: str
    elapsed_s: float
    rate_asked: float | None = None
    rate_sent: float | None = None
    """Requests a second that were sent; only the process that runs knows it."""
    rate_ended: float | None = None
    """Good answers a second, rolling."""
    output_tokens_per_s: float | None = None
    """Rolling."""
    in_flight: int | None = None
    """Only the process that runs knows it."""
    done: int = 0
    """Requests that are over, of which ``failed`` did not end well."""
    failed: int = 0
    errors: tuple[ErrorNow, ...] = ()
    latencies: dict[str, LatencyNow] = {}
    """By the names of ``METRICS``."""
    pace: Pace | None = None
    good: GoodNow | None = None
    """None without limits."""
    doubts: tuple[Doubt, ...] = ()
    since: str = "stage"
    """``stage``, or ``view``: what was over before somebody looked is in no number but ``done``."""
    sampled: float | None = None
    """Which share of the requests was read, where that was not all: latencies and limits are those of a sample."""


class ServerNow(msgspec.Struct, frozen=True):
    """The server's side, by the names of its levels: ``running``, ``waiting``, ``kv_share`` and so on."""

    engines: tuple[str, ...] = ()
    levels: dict[str, float] = {}
    courses: dict[str, Course] = {}


class BracketNow(msgspec.Struct, frozen=True):
    """Of a search for a limit: between which loads it lies by now."""

    axis: str
    low: float | None
    high: float | None
    tried: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A run, now."""

    state: str
    """The manifest's; ``killed`` where it says ``running`` and its process is gone."""
    target: str | None = None
    model: str | None = None
    elapsed_s: float | None = None
    """For how long stages have been measured, all sittings together."""
    left_s: float | None = None
    """Of the whole plan, as far as it tells; None = that depends on how fast the server answers."""
    stages: tuple[StageNow, ...] = ()
    """In the plan's order."""
    to_come: int = 0
    """Stages that are decided when these are done."""
    current: Current | None = None
    server: ServerNow | None = None
    limit: BracketNow | None = None
    error: str | None = None
