"""Cold against warm in a few sentences."""

from collections.abc import Iterator

from withstand.metrics.summary import ColdStart, Distribution, Interval, Summary
from withstand.report.numbers import count, counted, money, number, seconds

_HOW = {
    "gateway": "the gateway had stopped the engine",
    "restart": "the server was started anew; its start counts",
    "pause": "taken for cold after a pause",
}
_HOUR_S = 3600.0


def cold_lines(summary: Summary) -> Iterator[str]:
    """Nothing where no stage was cold."""
    cold = summary.cold_start
    if cold is None:
        return
    yield f"cold start ({_HOW[cold.by]}): TTFT cold {_side(cold.cold)}; warm {_side(cold.warm)}"
    if cold.extra is not None:
        start = "" if cold.start_mean is None else f"; the start alone {number(cold.start_mean)} ms"
        yield f"a cold start costs {number(cold.extra)} ms of TTFT{_within(cold.extra_interval)}{start}"
    yield from _told(cold)
    yield from _paid(summary, cold)


def _side(ttft: Distribution) -> str:
    """``p50 1,234 ms (1,100 to 1,400), mean 1,250 ms (…), 6 answers``."""
    told = [
        f"{name} {number(value)} ms{_within(ttft.intervals.get(name))}"
        for name, value in (("p50", ttft.percentiles.get("p50")), ("mean", ttft.mean))
        if value is not None
    ]
    return ", ".join([*told, counted(ttft.n or 0, "answer")])


def _within(interval: Interval | None) -> str:
    if interval is None or interval.low is None or interval.high is None:
        return ""
    return f" ({number(interval.low)} to {number(interval.high)})"


def _told(cold: ColdStart) -> Iterator[str]:
    """Whether they were what they are taken for."""
    answers = cold.cold.n or 0
    if cold.by == "gateway" and cold.cold_started < answers:
        yield (
            f"only {count(cold.cold_started)} of {counted(answers, 'cold answer')} waited for a start, as the "
            "gateway tells: the others were not cold"
        )
    if cold.warm_started:
        yield f"{count(cold.warm_started)} of {counted(cold.warm.n or 0, 'warm answer')} waited for a start"
    if cold.by == "pause":
        yield "nobody told whether the server was cold"


def _paid(summary: Summary, cold: ColdStart) -> Iterator[str]:
    """What idling costs against what a start costs, where an hour has a price."""
    if summary.economy is None or cold.extra is None or cold.extra <= 0:
        return
    hour = summary.economy.price_per_hour
    extra_s = cold.extra / 1000
    yield (
        f"kept warm while nobody asks, it costs {money(hour)} an hour; given back, a cold start costs "
        f"{money(hour * extra_s / _HOUR_S)} ({seconds(extra_s)}), and its first user waits"
    )
