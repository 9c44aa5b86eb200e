"""What a client is good for on a machine: steps of rising load, each judged by limits, and what follows from them.

A client whose own error could change a shown digit, or that has no time left, is at its limit. A null server that
could not keep up with what was asked says nothing of the client, and the verdict says that instead; and where both had
time to spare and a limit was met all the same, something else on the machine was in the way.
"""

import math
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from withstand.record import Clock

BUSY_SHARE_MAX = 0.9
IDLE_SHARE_MAX = 0.6
"""Who uses less of his core than this is not kept from his work by the load."""
LATE_NS_MAX = 5_000_000
LAG_NS_MAX = 5_000_000
UNSEEN_SHARE_MAX = 0.05
SERVER_LATE_NS_MAX = 5_000_000
"""Half a gap of the calibration: beyond it the load no longer has the shape that was asked for."""
_CLOSE = 1.3
"""A limit no further above the best good rate than this lets that be called the client's."""
_ITL_ERROR_NS_MAX = {Clock.KERNEL: 100_000, Clock.USER: 1_000_000}
_TTFT_ERROR_NS_MAX = {Clock.KERNEL: 300_000, Clock.USER: 1_000_000}


class Verdict(StrEnum):
    """Of one step."""

    GOOD = "good"
    CLIENT = "client"
    """The client was at its limit."""
    SERVER = "server"
    """The null server was; the client may be good for more."""
    DISTURBED = "disturbed"
    """Neither was, but a limit was met."""


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for in a step: streams of tokens, or short answers that are not streamed."""

    streamed: bool
    rate: float
    """Tokens a second, or requests."""
    tokens: int = 1
    """Of each answer."""
    gap_s: float = 0.0
    """From token to token."""
    seconds: float
    """For as long requests are sent."""

    @property
    def rate_rps(self) -> float:
        """Requests a second."""
        return self.rate / self.tokens

    @property
    def streams(self) -> int:
        """Answers on their way at once."""
        return round(self.rate * self.gap_s)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """How the client did under one load."""

    load: Load
    clock: Clock
    requests: int
    failed: int
    """Requests whose answer was not seen whole."""
    events: int
    cpu_share: float
    """Of a core, at the full rate."""
    lag_p99_ns: int | None
    itl_error_p99_ns: int | None
    ttft_error_p99_ns: int | None
    """Both against the null server's log of its writes."""
    late_p99_ns: int | None
    unseen_share: float
    """Gaps between events that are not known, because we looked away."""
    server_share: float
    """The null server's use of its core, at the full rate."""
    server_late_p99_ns: int
    waited_share: float | None = None
    """Of the step's time: the worker was ready, and others had its core."""

    @property
    def verdict(self) -> Verdict:
        """A client without any time left is at its limit whatever the server did; else the server comes first."""
        if self.saturated or self.failed:
            return Verdict.CLIENT
        if self.server_share >= BUSY_SHARE_MAX:
            return Verdict.SERVER
        if self.server_late_p99_ns > SERVER_LATE_NS_MAX:
            return Verdict.DISTURBED
        if self.client_limit:
            return Verdict.DISTURBED if self.cpu_share < IDLE_SHARE_MAX else Verdict.CLIENT
        return Verdict.GOOD

    @property
    def limit(self) -> str:
        """Which limit was met, in words; empty = none."""
        if self.verdict is Verdict.SERVER:
            return "CPU"
        late = self.verdict is Verdict.DISTURBED and self.server_late_p99_ns > SERVER_LATE_NS_MAX
        return "server late" if late else self.client_limit

    @property
    def saturated(self) -> bool:
        """Whether the client had no time left: that is no accident, and would come out again."""
        return self.cpu_share >= BUSY_SHARE_MAX

    @property
    def true_stamps(self) -> bool | None:
        """Whether the client's own error is within its limits, whatever else was in the way; None = not known."""
        errors = (self.itl_error_p99_ns, _ITL_ERROR_NS_MAX), (self.ttft_error_p99_ns, _TTFT_ERROR_NS_MAX)
        known = [error_ns <= most[self.clock] for error_ns, most in errors if error_ns is not None]
        return all(known) if known else None

    @property
    def client_limit(self) -> str:
        """The first of the client's own limits that is broken."""
        limits = (
            ("requests failed", self.failed, 0),
            ("CPU", self.saturated, False),
            ("late sends", self.late_p99_ns or 0, LATE_NS_MAX),
            ("lag", self.lag_p99_ns or 0, LAG_NS_MAX),
            ("gaps not seen", self.unseen_share, UNSEEN_SHARE_MAX),
            ("ITL error", self.itl_error_p99_ns or 0, _ITL_ERROR_NS_MAX[self.clock]),
            ("TTFT error", self.ttft_error_p99_ns or 0, _TTFT_ERROR_NS_MAX[self.clock]),
        )
        return next((name for name, value, most in limits if value > most), "")


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """What one worker is good for here; None = not known."""

    tokens_per_s: float | None = None
    streams: int | None = None
    """Answers at once at that rate."""
    tokens: int = 1
    """Of each answer, at that rate."""
    requests_per_s: float | None = None

    def load_of(self, *, rate_rps: float, tokens_per_s: float, streams: int) -> float:
        """How many workers' worth of load that is.

        A request and a token cost a share of a worker each; the token rate that was measured had its requests too.
        """
        by_cost = rate_rps * self._request_cost() + tokens_per_s * self._token_cost()
        by_streams = streams / self.streams if self.streams else 0.0
        return max(by_cost, by_streams)

    def workers_for(self, *, rate_rps: float, tokens_per_s: float, streams: int) -> int:
        """The fewest that carry it."""
        return max(1, math.ceil(self.load_of(rate_rps=rate_rps, tokens_per_s=tokens_per_s, streams=streams)))

    def _request_cost(self) -> float:
        return 1 / self.requests_per_s if self.requests_per_s else 0.0

    def _token_cost(self) -> float:
        if not self.tokens_per_s:
            return 0.0
        return max(0.0, 1 / self.tokens_per_s - self._request_cost() / self.tokens)


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """One calibration of one machine, as it is kept."""

    version: str
    created_utc: str
    machine: dict[str, str]
    placement: str
    """Which core the client and the null server had, as a sentence."""
    cores: int
    steps: tuple[Step, ...]

    @property
    def capacity(self) -> Capacity:
        """By the best of the good steps."""
        tokens, requests = best(self.steps, streamed=True), best(self.steps, streamed=False)
        return Capacity(
            tokens_per_s=tokens.load.rate if tokens else None,
            streams=tokens.load.streams if tokens else None,
            tokens=tokens.load.tokens if tokens else 1,
            requests_per_s=requests.load.rate if requests else None,
        )

    @property
    def whole(self) -> bool:
        """Whether both limits were found, and were the client's own."""
        return self.found(streamed=True) and self.found(streamed=False)

    def found(self, *, streamed: bool) -> bool:
        """Whether the client's own limit stands right above what it was good for."""
        return found(self.steps, streamed=streamed)


def best(steps: Sequence[Step], *, streamed: bool) -> Step | None:
    """The good step with the highest rate."""
    good = [s for s in steps if s.load.streamed is streamed and s.verdict is Verdict.GOOD]
    return max(good, key=lambda s: s.load.rate, default=None)


def found(steps: Sequence[Step], *, streamed: bool) -> bool:
    """Whether the client's own limit stands closely above what it was good for, and no other before it."""
    top = best(steps, streamed=streamed)
    above = [s for s in steps if s.load.streamed is streamed and top and s.load.rate > top.load.rate]
    limit = min((s.load.rate for s in above if s.verdict is Verdict.CLIENT), default=math.inf)
    hidden = any(s.verdict is Verdict.SERVER and s.load.rate <= limit for s in above)
    return top is not None and limit <= top.load.rate * _CLOSE and not hidden
