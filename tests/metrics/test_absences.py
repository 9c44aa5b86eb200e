"""Services of a stack that were away during a stage: how much of it, and what that takes from the numbers."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.absences import Absence, absences
from withstand.metrics.context import StageContext
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.reach import Circumstances, Effect, effect
from withstand.metrics.summarize import summarize_stage
from withstand.record import STARTED_ANEW, Outage, Record

S = 1_000_000_000


def outage(service: str, began_s: float, back_s: float | None = None, **facts: Any) -> Outage:
    back_ns = None if back_s is None else round(back_s * S)
    return Outage(
        service=service, began_ns=round(began_s * S), back_ns=back_ns, reason="ended and said nothing.", **facts
    )


def test_only_what_lies_within_the_stage_counts_and_only_of_services_that_are_asked() -> None:
    seen = (
        outage("a", 5, 11),
        outage("a", 14, 15),
        outage("b", 18),
        outage("early", 1, 10),
        outage("late", 20, 21),
        outage("idle", 10, asked=False),
    )
    a, b = absences(seen, 10 * S, 20 * S)
    assert (a.service, a.from_s, a.for_s, a.share, a.times) == ("a", 0.0, 2.0, 0.2, 2)
    assert (b.service, b.from_s, b.for_s, b.share, b.times) == ("b", 8.0, 2.0, 0.2, 1)


@given(st.lists(st.integers(0, 100), min_size=2, max_size=2, unique=True), st.integers(0, 99), st.integers(1, 100))
def test_parts_of_a_time_are_its_whole(span: list[int], began: int, length: int) -> None:
    """Of stages that lie side by side, what each has of an outage adds up to what their union has."""
    low, high = sorted(span)
    middle = (low + high) / 2
    seen = (outage("a", began, began + length),)

    def away_s(start: float, end: float) -> float:
        return sum(one.for_s for one in absences(seen, round(start * S), round(end * S)))

    assert abs(away_s(low, middle) + away_s(middle, high) - away_s(low, high)) < 1e-6


def lost(records: list[Record], make: Callable[..., StageContext], *away: Absence) -> Doubt | None:
    doubts = summarize_stage(records, make(len(records), absences=away)).doubts
    return next((doubt for doubt in doubts if doubt.kind is DoubtKind.SERVICE_LOST), None)


def absence(
    service: str,
    for_s: float,
    from_s: float = 2.0,
    times: int = 1,
    said: str = "ended (killed by SIGKILL) and said nothing.",
) -> Absence:
    return Absence(service=service, from_s=from_s, for_s=for_s, share=for_s / 10, times=times, reason=said)


def test_a_service_that_was_away_for_a_tenth_forbids_the_headline(
    answer: Callable[..., Record], context: Callable[..., StageContext]
) -> None:
    records = [answer(i, at_ms=100 * i) for i in range(100)]
    assert lost(records, context) is None
    short = lost(records, context, absence("m", 0.9, times=3))
    assert short
    assert not short.blocking
    assert "m was away for 0.90 s (9 %) of the stage, 3 times, from 2.00 s on" in short.sentence
    long = lost(records, context, absence("m", 8.0), absence("n", 1.0, from_s=0.0))
    assert long
    assert long.blocking
    assert "(m ended (killed by SIGKILL) and said nothing)" in long.sentence
    assert "n was away for 1.00 s (10 %) of the stage, from its begin on" in long.sentence
    assert long.brief == "m for 8.00 s (80 %), n for 1.00 s (10 %)"


def test_what_a_short_absence_takes_are_rates_and_tails() -> None:
    doubt = Doubt(DoubtKind.SERVICE_LOST, "Something.", "Mend it.")
    assert effect(doubt, "output_throughput", Circumstances()) is Effect.UNKNOWN
    assert effect(doubt, "ttft.p99", Circumstances()) is Effect.UNKNOWN
    assert effect(doubt, "ttft.p50", Circumstances()) is Effect.BESIDE


def test_what_somebody_wanted_is_not_to_be_mended(
    answer: Callable[..., Record], context: Callable[..., StageContext]
) -> None:
    records = [answer(i, at_ms=100 * i) for i in range(100)]
    wanted = [absence("m", 2.0, said=STARTED_ANEW), absence("n", 1.0, said=STARTED_ANEW)]
    cures = [lost(records, context, *away) for away in (wanted, [*wanted, absence("o", 0.5)])]
    assert [doubt.remedy.count("not while a run measures") for doubt in cures if doubt] == [1, 1]
    assert ["Mend what ended it" in doubt.remedy for doubt in cures if doubt] == [False, True]
