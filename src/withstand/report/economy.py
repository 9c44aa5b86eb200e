"""What a run means for a bill, in sentences: from which load on it pays, and what a day costs. Plain words."""

from collections.abc import Iterator

from withstand.metrics.breakeven import in_words
from withstand.metrics.idle import Day
from withstand.metrics.summary import BreakEven, Economy, Interval, Summary, Sustained
from withstand.report.numbers import money, number, percent, plain, seconds

_HOUR_S = 3600.0
_MILLION = 1e6


def sentences(summary: Summary) -> Iterator[str]:
    """Nothing of what was not asked."""
    economy = summary.economy
    if economy is None:
        return
    if economy.break_even:
        yield from _break_even(economy.break_even, economy.sustained)
    if economy.day:
        yield _always_on(economy)
        yield _given_back(economy, economy.day)


def why_no_day(summary: Summary) -> str | None:
    """What is missing for a day that was asked for, in one sentence; None = it is told."""
    economy = summary.economy
    if economy is None:
        return "What a day costs is not known: give what an hour of the machine costs, --price-per-hour."
    if economy.day is None and economy.cold_start_s is None:
        return "What a day costs is not known: give how long the machine takes to be ready, --cold-start 90s, say."
    return None if economy.day else "What a day costs is not known: no stage has an answer."


def why_no_price(summary: Summary) -> str | None:
    """Where a price of a GPU was told, and nobody knows of how many; None = the stages have their prices."""
    if any(stage.cost for stage in summary.stages):
        return None
    return "--price-per-gpu-hour: how many GPUs were in use is not known; give --gpus N."


def _break_even(found: BreakEven, sustained: Sustained) -> Iterator[str]:
    cached = f", {percent(found.cached_share)} of its input as cached" if found.cached_share else ""
    yield f"By the token 1,000 such requests cost {money(1000 * found.elsewhere_per_request)}{cached}."
    yield _never(found) if found.utilisation > 1 else _from(found)
    at = f"At {number(sustained.rps)} req/s, {_whose(sustained)}, it is {in_words(found.times_cheaper)}"
    yield f"{at}{_sure(found.times_interval)}."


def _sure(times: Interval | None) -> str:
    """``, between 1.2 times dearer and 1.1 times cheaper``; nothing where that is not known."""
    if times is None or not times.low or not times.high:
        return ""
    return f", between {in_words(times.low)} and {in_words(times.high)}"


def _never(found: BreakEven) -> str:
    return (
        "The machine is never cheaper at the largest rate that was seen: it would have to answer "
        f"{number(found.rate_rps)} req/s around the clock."
    )


def _from(found: BreakEven) -> str:
    return (
        f"The machine is cheaper from {number(found.rate_rps)} req/s on, around the clock: "
        f"{money(found.input_tokens_per_day / _MILLION)} million input and "
        f"{money(found.output_tokens_per_day / _MILLION)} million output tokens a day, "
        f"{percent(found.utilisation)} of the largest rate."
    )


def _whose(sustained: Sustained) -> str:
    """``the limit``, ``the most that keeps the limits (rate-4)``, ``the most that was seen (rate-4)``."""
    if sustained.stage is None:
        return "the limit"
    kept = "keeps the limits" if sustained.within_limits else "was seen"
    return f"the most that {kept} ({sustained.stage})"


def _always_on(economy: Economy) -> str:
    idle = economy.idle_per_day or 0.0
    requests = plain(round(economy.day.requests, 1) if economy.day else None)
    return (
        f"Always on, a day costs {money(economy.always_on_per_day)}: {requests} requests need "
        f"{percent(1 - idle / economy.always_on_per_day)} of it, {money(idle)} is paid for idling."
    )


def _starts(count: float) -> str:
    """``1 cold start``, ``3.4 cold starts``: a mean over days."""
    return f"{count:,.3g} cold start{'' if f'{count:.3g}' == '1' else 's'}"


def _given_back(economy: Economy, day: Day) -> str:
    up_h = plain(round(day.up_s / _HOUR_S, 2))
    return (
        f"Given back when idle, it costs {money(economy.scaled_per_day)} a day: up for {up_h} h, "
        f"{_starts(day.cold_starts)} of {seconds(economy.cold_start_s)}, "
        f"for which {percent(day.cold_share)} of requests wait."
    )
