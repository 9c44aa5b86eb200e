"""What the gateway counts of its own work. Labels are names from the configuration, so their number is bounded."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from enum import StrEnum

from msgspec import Struct

from withstand.gateway import tap
from withstand.gateway.money.rows import Sums
from withstand.gateway.refusals import Refusal

_MS = 1_000_000
HOP_BOUNDS_NS = tuple(round(ms * _MS) for ms in (0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 25, 100, 1000))
LATENCY_BOUNDS_NS = tuple(
    round(ms * _MS)
    for ms in (5, 10, 20, 50, 100, 200, 300, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000, 120_000, 600_000)
)


_GENERATE = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"})
"""Routes whose answers are tokens."""


class Outcome(StrEnum):
    """How a request ended. A str, for it is a part of keys, and a plain Enum is slow to hash."""

    OK = "ok"
    """The engine's answer is complete, and no error."""
    ENGINE_REFUSED = "engine_refused"
    """It is complete, with a status 4xx."""
    ENGINE_ERROR = "engine_error"
    """It is complete, with a status 5xx or, in a stream, an error event."""
    REFUSED = "refused"
    """By the gateway: key, model, body, limits."""
    QUEUE_FULL = "queue_full"
    QUEUE_TIMEOUT = "queue_timeout"
    NO_ENGINE = "no_engine"
    ENGINE_FAILED = "engine_failed"
    """It could not be reached to the end: what it sent is no whole answer."""
    TIMEOUT = "timeout"
    CLIENT_LEFT = "client_left"
    SHUT_DOWN = "shut_down"
    """The gateway has ended before the answer."""


def outcome_of(status: int, events: Collection[bytes] = ()) -> Outcome:
    """Of an engine's complete answer; ``events``: the last pieces of a stream."""
    if status >= 400:
        return Outcome.ENGINE_REFUSED if status < 500 else Outcome.ENGINE_ERROR
    return Outcome.ENGINE_ERROR if events and tap.fails(events) else Outcome.OK


class Ending(Struct, frozen=True, gc=False):
    """One request that is over; None = it did not come to that."""

    request_id: str
    route: str
    key: str | None
    model: str | None
    engine: str | None
    status: int
    outcome: Outcome
    hop_ns: int
    queue_ns: int | None
    first_byte_ns: int | None
    total_ns: int
    prompt_tokens: int | None
    cached_tokens: int | None
    """Of the prompt."""
    output_tokens: int | None
    attempts: int = 0
    """Engines that were asked."""
    refusal: Refusal | None = None
    """What the gateway has said in an engine's place."""


class Histogram:
    """Counts up to each bound, and above."""

    __slots__ = ("bounds_ns", "counts", "sum_ns")

    def __init__(self, bounds_ns: Sequence[int]) -> None:
        self.bounds_ns = bounds_ns
        self.counts = [0] * (len(bounds_ns) + 1)
        self.sum_ns = 0

    def add(self, value_ns: int) -> None:
        """One observation."""
        self.counts[bisect_left(self.bounds_ns, value_ns)] += 1
        self.sum_ns += value_ns

    def add_all(self, values_ns: list[int]) -> None:
        """Many: sorted, they need to be looked through only once."""
        values_ns.sort()
        below = 0
        for i, bound_ns in enumerate(self.bounds_ns):
            up_to = bisect_right(values_ns, bound_ns, below)
            self.counts[i] += up_to - below
            below = up_to
        self.counts[-1] += len(values_ns) - below
        self.sum_ns += sum(values_ns)


class Counts:
    """Since the start of the process."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int, Outcome]] = Counter()
        """(route, model, status, outcome); a model that does not exist is the empty name."""
        self.tokens: Counter[str] = Counter()
        self.untold: Counter[str] = Counter()
        """By model: good answers of which the engine has told no tokens."""
        self.retries = 0
        """On a fresh connection, because a quiet one was closed."""
        self.unreadable = 0
        """Connections that were turned away: what came was not HTTP, too large, or too late."""
        self.no_descriptors = 0
        """Connections that could not be had because the process may have no more open files."""
        self.failovers = 0
        """To another engine."""
        self.limited: Counter[tuple[str, str]] = Counter()
        """(key's owner, limit): turned away."""
        self.used: dict[str, Sums] = {}
        """By key's owner."""
        self.state_failures = 0
        """The store did not take, or tell, what it was to."""
        self.fallbacks: Counter[str] = Counter()
        """Requests of disaggregated models that decode did alone, by the reason."""
        self.hop = Histogram(HOP_BOUNDS_NS)
        self.lag = Histogram(HOP_BOUNDS_NS)
        """How late the loop comes to what is due."""
        self.first_byte: dict[str, Histogram] = {}
        self.total: dict[str, Histogram] = {}
        self.cold_start: dict[str, Histogram] = {}
        """Of engines that the gateway starts: from when somebody waited for one until it was ready."""

    def came_up(self, engine: str, cold_ns: int) -> None:
        """One more cold start."""
        _of(self.cold_start, engine).add(cold_ns)

    def add(self, endings: Sequence[Ending]) -> None:
        """More requests are over."""
        self.requests.update((e.route, e.model or "", e.status, e.outcome) for e in endings)
        good = [ending for ending in endings if ending.outcome is Outcome.OK]
        self.hop.add_all([ending.hop_ns for ending in good])
        for model in {ending.model for ending in good}:
            self._add_good(model or "", [ending for ending in good if ending.model == model])

    def _add_good(self, model: str, endings: Sequence[Ending]) -> None:
        """All of one model."""
        _of(self.total, model).add_all([e.total_ns for e in endings])
        if firsts_ns := [e.first_byte_ns for e in endings if e.first_byte_ns is not None]:
            _of(self.first_byte, model).add_all(firsts_ns)
        if tokens := [e.output_tokens for e in endings if e.output_tokens is not None]:
            self.tokens[model] += sum(tokens)
        if untold := sum(e.output_tokens is None and e.route in _GENERATE for e in endings):
            self.untold[model] += untold

    def add_usage(self, owner: str, sums: Sums) -> None:
        """One more request that is settled."""
        total = self.used.get(owner)
        if total is None:
            total = self.used[owner] = Sums()
        total.add(sums)


def _of(histograms: dict[str, Histogram], model: str) -> Histogram:
    histogram = histograms.get(model)
    if histogram is None:
        histogram = histograms[model] = Histogram(LATENCY_BOUNDS_NS)
    return histogram
