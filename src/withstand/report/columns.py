"""The table of stages: one list of columns for the terminal, Markdown and HTML, so that all three say the same.

Also what the smaller tables beside it (tokens, costs) are made of: they leave out a column that nobody fills.
"""

import math
from collections.abc import Callable, Sequence

import msgspec

from withstand.metrics.summary import Distribution, StageSummary, Summary
from withstand.report.numbers import UNKNOWN, count, number, per_second, plain
from withstand.report.standing import few


class StageColumn(msgspec.Struct, frozen=True):
    """A heading of a smaller table, and what stands in a stage's row: a number, and in a second line what is of it."""

    heading: str
    cell: Callable[[StageSummary], str]


def filled(columns: Sequence[StageColumn], summary: Summary) -> list[StageColumn]:
    """Those in which any stage has something."""
    return [c for c in columns if any(c.cell(stage) != UNKNOWN for stage in summary.stages)]


class Column(msgspec.Struct, frozen=True):
    """A heading, the same in three short lines where it is narrow, and what stands in a stage's row."""

    heading: str
    stacked: tuple[str, str, str]
    cell: Callable[[StageSummary], str]


def name_of(stage: StageSummary) -> str:
    """Under its phase's heading it need not say the phase again."""
    return stage.name.removeprefix(f"{stage.phase} ")


def rate_asked(stage: StageSummary) -> str:
    """A rate, ``inf``, or the name of a process that has no single rate; unknown where another tool does not tell."""
    load = stage.load
    if load.arrivals == "unknown" and load.request_rate is None:
        return UNKNOWN
    return load.arrivals if load.request_rate is None else plain(load.request_rate)


def concurrency(stage: StageSummary) -> str:
    """The cap; without one, ``~`` and the mean of what was in flight."""
    if stage.load.max_concurrency is not None:
        return count(stage.load.max_concurrency)
    return UNKNOWN if stage.concurrency_mean is None else f"~{stage.concurrency_mean:,.1f}"


def doubts_counted(stage: StageSummary) -> str:
    """How many; ``!`` when one of them blocks the headline."""
    if not stage.doubts:
        return UNKNOWN
    return f"{len(stage.doubts)}{'!' if any(doubt.blocking for doubt in stage.doubts) else ''}"


def percentile(distribution: Distribution, key: str) -> str:
    """``p50`` … ``p99``, in ms."""
    return number(distribution.percentiles.get(key))


GOODPUT = Column("Goodput (req/s)", ("good", "rate", "req/s"), lambda s: per_second(s.request_goodput))
"""Of a plan that says what is good."""
COLUMNS = (
    Column("Rate asked (req/s)", ("asked", "rate", "req/s"), rate_asked),
    Column("Rate answered (req/s)", ("done", "rate", "req/s"), lambda s: per_second(s.request_throughput)),
    GOODPUT,
    Column("Conc.", ("conc.", "", ""), concurrency),
    Column("OK/asked", ("ok", "/asked", ""), lambda s: f"{s.completed:,}/{s.attempted:,}"),
    Column("TTFT p50 (ms)", ("TTFT", "p50", "ms"), lambda s: percentile(s.ttft, "p50")),
    Column("TTFT p99 (ms)", ("TTFT", "p99", "ms"), lambda s: percentile(s.ttft, "p99")),
    Column("ITL p50 (ms)", ("ITL", "p50", "ms"), lambda s: percentile(s.itl, "p50")),
    Column("ITL p99 (ms)", ("ITL", "p99", "ms"), lambda s: percentile(s.itl, "p99")),
    Column("E2EL p50 (ms)", ("E2EL", "p50", "ms"), lambda s: percentile(s.e2el, "p50")),
    Column("Output (tok/s)", ("out", "", "tok/s"), lambda s: number(s.output_throughput)),
    Column("Doubts", ("?", "", ""), doubts_counted),
)
_RATES = 5
"""So many of them, before those of the answers."""

_OFF = 0.25
_CHANCE_SDS = 5.0


def columns_of_stages(summary: Summary) -> tuple[Sequence[Column], Sequence[Column]]:
    """Those that these stages have: of their rates, and of the answers."""
    has_limits = any(stage.request_goodput is not None for stage in summary.stages)
    rates = [column for column in COLUMNS[:_RATES] if has_limits or column is not GOODPUT]
    return rates, COLUMNS[_RATES:]


def captions(summary: Summary) -> list[str]:
    """What the cells of the table mean, and where a rate asked is not the one that was sent, by chance alone."""
    drawn = [f"{number(rate)} ({name_of(stage)})" for stage in summary.stages if (rate := _drawn(stage)) is not None]
    told = [f"few arrivals, drawn, were sent at {', '.join(few(drawn))} req/s"] if drawn else []
    alone = [name_of(s) for s in summary.stages if _is_drawn(s) and s.attempted == 1]
    single = [f"one arrival makes no rate ({', '.join(few(alone))})"] if alone else []
    return ["conc.: the cap on requests in flight, else ~ their mean", *told, *single]


def _is_drawn(stage: StageSummary) -> bool:
    """Chance decided when requests were sent, and nothing else."""
    load = stage.load
    return load.arrivals in {"poisson", "gamma"} and bool(load.request_rate) and not load.max_concurrency


def _drawn(stage: StageSummary) -> float | None:
    """The rate of what was sent, where the draw of few arrivals has made it another than was asked; None = it has not.

    The mean of n gaps has a relative standard deviation of 1 / √(n · burstiness), and with few of them a long tail: the
    bound is on its logarithm, and wide.
    """
    asked_rps, sent_rps, gaps = stage.load.request_rate, stage.achieved_rate, stage.attempted - 1
    if not _is_drawn(stage) or not asked_rps or not sent_rps or gaps < 1:
        return None
    by_chance = _CHANCE_SDS / math.sqrt(gaps * (stage.load.burstiness or 1.0))
    is_off = abs(sent_rps / asked_rps - 1) > _OFF
    return sent_rps if is_off and abs(math.log(sent_rps / asked_rps)) < by_chance else None
