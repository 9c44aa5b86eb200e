"""``withstand calibrate``: rising loads against the null server until a limit is met, and what follows from them."""

from collections.abc import Callable

from withstand import __version__, clock
from withstand.app.calibration.bench import Bench
from withstand.app.calibration.search import next_rate
from withstand.app.machine import client_facts
from withstand.load.limits import ensure_descriptors
from withstand.metrics.calibration import Calibration, Load, Step

SECONDS = 15.0
TOKENS, GAP_S = 64, 0.01
"""Of each streamed answer."""
_STREAMED_S, _SHORT_S = 1.1, 0.5
"""For as long requests are sent in a step."""
_STREAMED_FIRST, _SHORT_FIRST = 8_000.0, 1_000.0
_STREAMED_SHARE = 0.7
"""Of the whole time; short requests have what is left."""

Listener = Callable[[Load, float], None]
"""Hears what is tried next, and which share of the time has gone."""


def calibrate(*, seconds: float = SECONDS, listener: Listener = lambda *_: None) -> Calibration:
    """Find out within about ``seconds`` what one worker is good for here.

    Raises:
        MeasureError: the null server or a worker did not come up.
    """
    ensure_descriptors(None)
    begun_ns = clock.now_ns()
    with Bench() as bench:
        search = _Search(bench, begun_ns, int(seconds * 1e9), listener)
        streamed = search.steps(streamed_load, _STREAMED_FIRST, _STREAMED_SHARE)
        short = search.steps(short_load, _SHORT_FIRST, 1.0)
    return Calibration(
        version=__version__,
        created_utc=clock.utc_iso(clock.anchor().wall_ns),
        machine=client_facts(),
        placement=bench.placement,
        cores=bench.cores,
        steps=(*streamed, *short),
    )


def streamed_load(tokens_per_s: float) -> Load:
    """Streams of tokens."""
    return Load(streamed=True, rate=tokens_per_s, tokens=TOKENS, gap_s=GAP_S, seconds=_STREAMED_S)


def short_load(rate_rps: float) -> Load:
    """Requests whose answer is small, whole and there at once."""
    return Load(streamed=False, rate=rate_rps, seconds=_SHORT_S)


class _Search:
    """Steps until the limit is known or the time is up."""

    def __init__(self, bench: Bench, begun_ns: int, whole_ns: int, listener: Listener) -> None:
        self._bench = bench
        self._begun_ns = begun_ns
        self._whole_ns = whole_ns
        self._listener = listener

    def steps(self, load_of: Callable[[float], Load], first: float, until_share: float) -> list[Step]:
        """At least one; the last ends at about ``until_share`` of the whole time."""
        steps: list[Step] = []
        longest = 0.0
        while (rate := next_rate(steps, first)) is not None:
            gone = self._gone()
            if steps and gone + longest > until_share:
                break
            self._listener(load_of(rate), min(gone, 1.0))
            steps.append(self._bench.measure(load_of(rate)))
            longest = max(longest, self._gone() - gone)
        return steps

    def _gone(self) -> float:
        return (clock.now_ns() - self._begun_ns) / self._whole_ns
