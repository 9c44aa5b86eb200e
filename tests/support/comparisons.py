"""Comparisons made by hand: two or more sides over a course of rates and one of concurrencies."""

from collections.abc import Sequence

from withstand.compare.shape import (
    Cell,
    Comparison,
    Decision,
    Difference,
    Group,
    Method,
    Objection,
    Row,
    Side,
    Unmatched,
    Verdict,
    Volume,
)
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.summary import Interval

NOW = "2026-11-28T03:04:05Z"
FAILED = Doubt(DoubtKind.REQUESTS_FAILED, "3 of 100 requests failed.", "Find the cause first.")
METRICS = (
    ("ttft.mean", "Mean TTFT", "ms", True),
    ("ttft.p50", "Median TTFT", "ms", True),
    ("ttft.p99", "P99 TTFT", "ms", True),
    ("tpot.mean", "Mean TPOT", "ms", True),
    ("itl.mean", "Mean ITL", "ms", True),
    ("e2el.mean", "Mean E2EL", "ms", True),
    ("output_throughput", "Output throughput", "tok/s", False),
    ("success_rate", "Success rate", "share", False),
)
VERDICTS = (Verdict.WORSE, Verdict.BETTER, Verdict.NO_DIFFERENCE, Verdict.UNKNOWN)


def row_of(metric: tuple[str, str, str, bool], values: Sequence[float], *, facts: bool = True, turn: int = 0) -> Row:
    """A row whose percentages are right and whose verdicts go through all there are."""
    key, title, unit, lower = metric
    best, worst = (min(values), max(values)) if lower else (max(values), min(values))
    differences = [
        difference_of(value / values[0] * 100 - 100, turn + i, facts=facts) for i, value in enumerate(values)
    ]
    return Row(
        metric=key,
        title=title,
        unit=unit,
        lower_is_better=lower,
        cells=tuple(cell_of(value, turn + i, facts=facts) for i, value in enumerate(values)),
        fastest=None if best == worst else list(values).index(best),
        faster_by_percent=None if best == worst else abs(worst - best) / max(best, worst) * 100,
        differences=(None, *differences[1:]),
        lacks=() if facts else ("Aggregates only.",),
        remark=None if facts else "Aggregates only.",
    )


def cell_of(value: float, turn: int, *, facts: bool) -> Cell:
    interval = Interval(value * 0.95, value * 1.04) if facts else None
    return Cell(value=value, interval=interval, n=100 if facts else None, doubts=(FAILED,) if turn % 5 == 4 else ())


def difference_of(percent: float, turn: int, *, facts: bool) -> Difference:
    if not facts:
        return Difference(percent=percent, method=Method.NONE, verdict=Verdict.UNKNOWN)
    verdict = VERDICTS[turn % len(VERDICTS)]
    return Difference(
        percent=percent,
        interval=Interval(percent - 4, percent + 5),
        method=Method.BLOCKS,
        chance=0.4 if verdict is Verdict.NO_DIFFERENCE else 0.003,
        verdict=verdict,
        enough="3 times as long to show 5 %" if verdict is Verdict.NO_DIFFERENCE else None,
    )


def group_of(label: str, place: int, sides: int, *, facts: bool = True, **where: float) -> Group:
    rows = []
    for turn, metric in enumerate(METRICS):
        base = 1.0 if metric[2] == "share" else 12.5 * (turn + 1) * (place + 1)
        values = [
            base * (1 - 0.03 * side) if metric[2] == "share" else base * (1 + 0.21 * side) for side in range(sides)
        ]
        rows.append(row_of(metric, values, facts=facts, turn=turn + place))
    return Group(
        label=label,
        conditions={"model": "SmolLM2", "prompts": "100"},
        rows=tuple(rows),
        volumes=tuple(
            Volume(attempted=100, completed=100 - 3 * side, duration_s=60.0, input_tokens=12_800, output_tokens=3_200)
            for side in range(sides)
        ),
        rate=where.get("rate"),
        concurrency=where.get("concurrency"),  # type: ignore[arg-type]
    )


def comparison_of(labels: Sequence[str] = ("old", "new"), *, facts: bool = True, forced: bool = False) -> Comparison:
    """Four rates, one of them inf, and three concurrencies."""
    n = len(labels)
    rates = [group_of(f"{rate} req/s", i, n, facts=facts, rate=rate) for i, rate in enumerate((1, 5, 10))]
    caps = [group_of(f"concurrency {cap}", i, n, facts=facts, concurrency=cap) for i, cap in enumerate((1, 4, 16))]
    return Comparison(
        sides=tuple(
            Side(label=label, sources=(f"{label}.json",), tool="vLLM", model="SmolLM2", facts=facts) for label in labels
        ),
        groups=(*rates, group_of("inf", 3, n, facts=facts), *caps),
        unmatched=(Unmatched(1, "20 req/s", "the other side has no such rate."),),
        forced=forced,
        headline="The new one is slower to the first token.",
        method="Blocks of requests over time.",
    )


DECISIONS = (
    Decision(
        wins_for="lowest TTFT", winner="old", evidence="45 ms against 64 ms.", against=(Objection("One run each"),)
    ),
    Decision(wins_for="throughput", winner=None, evidence="2,841 against 2,783 tok/s."),
)
EVIL = "</script><img src=x onerror=alert(1)>|`*\u2028&lt; %{y} $title"


def evil_comparison() -> Comparison:
    """Foreign text that would like to be markup wherever foreign text can stand."""
    doubt = Doubt(DoubtKind.IMPOSSIBLE, EVIL, EVIL)
    cell = Cell(value=1.0, doubts=(doubt,))
    difference = Difference(percent=0.0, method=Method.NONE, verdict=Verdict.UNKNOWN, enough=EVIL)
    row = Row(
        metric=EVIL,
        title=EVIL,
        unit=EVIL,
        lower_is_better=True,
        cells=(cell, cell),
        fastest=0,
        faster_by_percent=0.0,
        differences=(None, difference),
        because=(doubt,),
        lacks=(EVIL,),
        remark=EVIL,
    )
    side = Side(label=EVIL, sources=(EVIL,), tool=EVIL, model=EVIL, facts=False, doubts=(doubt,))
    return Comparison(
        sides=(side, side),
        groups=(Group(label=EVIL, rate=1.0, conditions={EVIL: EVIL}, rows=(row,), remarks=(EVIL + "!",)),) * 2,
        unmatched=(Unmatched(0, EVIL, EVIL),),
        headline=EVIL,
        doubts=(doubt,),
        method=EVIL,
    )


EVIL_DECISIONS = (Decision(wins_for=EVIL, winner=EVIL, evidence=EVIL, against=(Objection(EVIL, note=EVIL),)),)
