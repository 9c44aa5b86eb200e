"""The table of decisions: who wins what, and that a number that is only larger wins nothing."""

from collections.abc import Sequence

import msgspec
import pytest

from withstand.compare.decision import decide
from withstand.compare.shape import Cell, Comparison, Decision, Difference, Group, Method, Row, Side, Verdict, Volume
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.summary import Interval
from withstand.spec import TokenPrice

LABELS = ("a", "b", "c")


def row(
    metric: str,
    values: Sequence[float | None],
    verdicts: Sequence[Verdict],
    intervals: Sequence[Interval | None] | None = None,
    lacks: tuple[str, ...] = (),
    because: tuple[Doubt, ...] = (),
) -> Row:
    lower = not metric.startswith(("output", "request", "success"))
    known = [value for value in values if value is not None]
    best = (min if lower else max)(known) if len(known) == len(values) and len(set(known)) > 1 else None
    differences = [Difference(percent=None, method=Method.BLOCKS, verdict=verdict) for verdict in verdicts]
    spans = intervals or [None] * len(values)
    return Row(
        metric=metric,
        title=metric,
        unit="share" if metric == "success_rate" else "ms" if lower else "tok/s",
        lower_is_better=lower,
        cells=tuple(Cell(value=value, interval=span) for value, span in zip(values, spans, strict=True)),
        fastest=None if best is None else list(values).index(best),
        faster_by_percent=None if best is None else 100 * (max(known) - min(known)) / max(known),
        differences=(None, *differences),
        because=because,
        lacks=lacks,
    )


def comparison(*groups: tuple[str, Sequence[Row]], forced: bool = False) -> Comparison:
    count = len(groups[0][1][0].cells)
    return Comparison(
        sides=tuple(Side(label=label, sources=(label,), tool="t", facts=True) for label in LABELS[:count]),
        groups=tuple(Group(label=label, rows=tuple(rows)) for label, rows in groups),
        headline="",
        method="",
        forced=forced,
    )


def only(told: Comparison, prices: dict[str, float] | None = None) -> Decision:
    (decision,) = decide(told, prices)
    return decision


def said(decision: Decision) -> list[str]:
    return [objection.remark for objection in decision.against]


def test_a_side_that_is_shown_to_be_better_wins() -> None:
    decision = only(comparison(("5 req/s", [row("ttft.p50", [50.0, 40.0], [Verdict.BETTER])])))
    assert (decision.wins_for, decision.winner) == ("lowest TTFT", "b")
    assert "a 50 ms, b 40 ms" in decision.evidence


def test_the_baseline_wins_when_all_others_are_shown_to_be_worse() -> None:
    rows = [row("output_throughput", [200.0, 100.0, 90.0], [Verdict.WORSE, Verdict.WORSE])]
    assert only(comparison(("inf", rows))).winner == "a"
    rows = [row("output_throughput", [200.0, 100.0, 199.0], [Verdict.WORSE, Verdict.NO_DIFFERENCE])]
    assert only(comparison(("inf", rows))).winner is None


@pytest.mark.parametrize("verdict", [Verdict.NO_DIFFERENCE, Verdict.UNKNOWN])
def test_a_number_that_is_only_smaller_wins_nothing(verdict: Verdict) -> None:
    decision = only(comparison(("5 req/s", [row("ttft.p50", [50.0, 40.0], [verdict], lacks=("Single runs.",))])))
    assert decision.winner is None
    assert "b has the better number at 1 of 1 loads, not shown to be more" in decision.evidence
    assert said(decision) == ["Single runs"]


def test_what_stands_against_a_winner_is_named_once_with_its_loads() -> None:
    late = Doubt(DoubtKind.RATE_NOT_ACHIEVED, "27.91 of 30 requests a second were achieved.", "Compare lower rates.")
    busy = [(f"{rate} req/s", [row("ttft.p50", [50, 40], [Verdict.UNKNOWN], because=(late,))]) for rate in (30, 35)]
    calm = ("1 req/s", [row("ttft.p50", [50, 40], [Verdict.UNKNOWN])])
    assert said(only(comparison(calm, *busy))) == ["Rate not achieved at 30 req/s, 35 req/s"]
    assert said(only(comparison(*busy))) == ["Rate not achieved at all loads"]
    assert said(only(comparison(busy[0]))) == ["Rate not achieved"]


def test_a_load_whose_numbers_a_doubt_strikes_is_quoted_last() -> None:
    doubt = Doubt(DoubtKind.RATE_NOT_ACHIEVED, "27 of 30 were achieved.", "Compare lower rates.")
    struck = row("ttft.p50", [250.0, 730.0], [Verdict.UNKNOWN], because=(doubt,))
    sound = row("ttft.p50", [40.0, 50.0], [Verdict.UNKNOWN])
    decision = only(comparison(("5 req/s", [sound]), ("30 req/s", [struck])))
    assert "at 2 of 2 loads" in decision.evidence
    assert "ttft.p50 at 5 req/s: a 40 ms, b 50 ms" in decision.evidence


def test_other_work_is_no_tie() -> None:
    other = Doubt(DoubtKind.LENGTHS_DIFFER, "5.06 times as much.", "Measure again.", blocking=True)
    void = row("output_throughput", [200.0, 200.0], [Verdict.UNKNOWN], because=(other,))
    assert only(comparison(("x", [void]))).evidence.startswith("The sides did not do the same work: ")


def test_two_that_beat_the_baseline_are_told_apart_by_their_intervals() -> None:
    better = [Verdict.BETTER, Verdict.BETTER]
    apart = [Interval(98, 102), Interval(49, 51), Interval(39, 41)]
    touching = [Interval(98, 102), Interval(40, 60), Interval(30, 50)]
    assert only(comparison(("x", [row("ttft.p50", [100, 50, 40], better, apart)]))).winner == "c"
    assert only(comparison(("x", [row("ttft.p50", [100, 50, 40], better, touching)]))).winner is None


def test_whoever_wins_at_one_load_and_loses_at_another_does_not_win() -> None:
    low = ("1 req/s", [row("ttft.p50", [50.0, 40.0], [Verdict.BETTER])])
    high = ("9 req/s", [row("ttft.p50", [50.0, 80.0], [Verdict.WORSE])])
    decision = only(comparison(low, high))
    assert decision.winner is None
    assert "a is ahead: ttft.p50 at 9 req/s" in decision.evidence
    assert "b is ahead: ttft.p50 at 1 req/s" in decision.evidence


def test_every_purpose_that_is_told_has_its_line() -> None:
    names = ("ttft.p50", "tpot.p50", "itl.p99", "e2el.p50", "output_throughput", "request_goodput", "ttft.p99")
    names += ("success_rate",)
    rows = [row(name, [1.0, 0.5], [Verdict.UNKNOWN]) for name in names]
    told = decide(comparison(("x", rows)))
    assert [decision.wins_for for decision in told] == [
        "lowest TTFT",
        "lowest TPOT",
        "steady stream",
        "whole answer",
        "throughput",
        "within limits",
        "tail",
        "success",
    ]
    assert "a 100 %, b 50 %" in told[-1].evidence


def test_a_forced_comparison_says_so_at_each_line() -> None:
    rows = [row("ttft.p50", [50.0, 40.0], [Verdict.BETTER])]
    assert "forced" in said(only(comparison(("x", rows), forced=True)))[0]


def cost_of(told: Comparison, **prices: float) -> Decision:
    return next(decision for decision in decide(told, prices) if decision.wins_for == "cost")


def test_the_cheapest_is_the_one_whose_interval_lies_below() -> None:
    sure = [Interval(990, 1010), Interval(1980, 2020)]
    rows = [row("output_throughput", [1000.0, 2000.0], [Verdict.BETTER], sure)]
    decision = cost_of(comparison(("inf", rows)), a=3.6, b=3.6)
    assert decision.winner == "b"
    assert "b 0.5 (0.495 to 0.505) at inf, a 1 (0.99 to 1.01) at inf" in decision.evidence


def test_a_price_can_turn_the_order() -> None:
    sure = [Interval(990, 1010), Interval(1980, 2020)]
    rows = [row("output_throughput", [1000.0, 2000.0], [Verdict.BETTER], sure)]
    assert cost_of(comparison(("inf", rows)), a=3.6, b=36.0).winner == "a"


def test_aggregates_of_single_runs_decide_no_price() -> None:
    rows = [row("output_throughput", [1000.0, 2000.0], [Verdict.UNKNOWN])]
    decision = cost_of(comparison(("inf", rows)), a=3.6, b=3.6)
    assert decision.winner is None
    assert any("chance" in remark for remark in said(decision))


def test_each_side_is_priced_at_its_own_best_load() -> None:
    low = ("1 req/s", [row("output_throughput", [100.0, 100.0], [Verdict.NO_DIFFERENCE])])
    high = ("9 req/s", [row("output_throughput", [900.0, 50.0], [Verdict.WORSE])])
    assert "a 1.11 at 9 req/s, b 10 at 1 req/s" in cost_of(comparison(low, high), a=3.6, b=3.6).evidence


TOKENS = TokenPrice(input=3.0, output=6.0)
"""A request of 100 and 50 tokens costs 0.0006; at 3.6 an hour a machine pays from 1.67 req/s on."""


def against_tokens(label: str, row_of_rates: Row, **prices: float) -> Decision:
    told = comparison((label, [row_of_rates]))
    volume = Volume(completed=10, input_tokens=1000, output_tokens=500)
    groups = [msgspec.structs.replace(group, volumes=(volume,) * len(told.sides)) for group in told.groups]
    told = msgspec.structs.replace(told, groups=tuple(groups))
    return next(one for one in decide(told, prices, TOKENS) if one.wins_for == "cheaper than tokens")


def test_the_machine_that_is_shown_to_be_cheaper_than_tokens_and_than_all_others() -> None:
    sure = [Interval(0.9, 1.1), Interval(3.8, 4.2)]
    decision = against_tokens("inf", row("request_throughput", [1.0, 4.0], [Verdict.BETTER], sure), a=3.6, b=3.6)
    assert decision.winner == "b"
    assert "b 2.4 times cheaper at inf, from 1.67 req/s on" in decision.evidence
    assert "a 1.67 times dearer at inf, never cheaper at what was seen" in decision.evidence


@pytest.mark.parametrize(
    ("sure", "verdict"),
    [
        ([Interval(0.9, 1.1), Interval(1.6, 6.0)], Verdict.BETTER),
        ([Interval(0.9, 3.9), Interval(3.8, 4.2)], Verdict.NO_DIFFERENCE),
        ([Interval(0.9, 1.1), Interval(3.8, 4.2)], Verdict.UNKNOWN),
        ([None, Interval(3.8, 4.2)], Verdict.BETTER),
    ],
    ids=["may be dearer", "may be the other", "doubted", "of one nothing is known"],
)
def test_a_machine_that_is_not_shown_to_be_cheaper_wins_nothing(sure: list[Interval | None], verdict: Verdict) -> None:
    assert against_tokens("inf", row("request_throughput", [1.0, 4.0], [verdict], sure), a=3.6, b=3.6).winner is None


def test_without_tokens_nothing_is_weighed_against_them() -> None:
    told = comparison(("inf", [row("request_throughput", [1.0, 4.0], [Verdict.BETTER])]))
    assert "cheaper than tokens" not in [one.wins_for for one in decide(told, {"a": 3.6}, TOKENS)]
