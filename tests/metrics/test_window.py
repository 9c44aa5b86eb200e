from collections.abc import Callable

import pytest

from withstand.metrics.flow import Flow
from withstand.metrics.window import steady_window
from withstand.record import Record

Answer = Callable[..., Record]


def flow_of(records: list[Record]) -> Flow:
    flow = Flow()
    for record in records:
        flow.add(record)
    return flow


def test_a_filled_and_emptied_stage_has_its_plateau_in_the_middle(answer: Answer) -> None:
    """One request each 100 ms, each 1 s long: 9 at once from 0.8 s on, and the last is sent at 9.9 s."""
    flow = flow_of([answer(i, at_ms=100 * i, ttft_ms=100, itl_ms=100, tokens=10) for i in range(100)])
    window = steady_window(flow)
    assert window is not None
    assert window.start_s == pytest.approx(0.8)  # 9 at once is 90 % of the plateau
    assert window.end_s == pytest.approx(9.9)
    assert window.request_throughput == pytest.approx(10.0, rel=0.03)
    assert window.output_throughput == pytest.approx(100.0, rel=0.05)


def test_one_at_a_time_is_steady_from_end_to_end(answer: Answer) -> None:
    flow = flow_of([answer(i, at_ms=250 * i) for i in range(20)])
    window = steady_window(flow)
    assert window is not None
    assert (window.start_s, window.end_s) == (0.0, pytest.approx(4.7))


def test_idle_time_does_not_count_for_the_plateau(answer: Answer) -> None:
    assert steady_window(flow_of([answer(i, at_ms=1000 * i) for i in range(12)])) is not None


def test_too_short_or_too_few_is_no_window(answer: Answer) -> None:
    assert steady_window(flow_of([answer(i, at_ms=10 * i) for i in range(50)])) is None
    assert steady_window(flow_of([answer(i, at_ms=1000 * i) for i in range(5)])) is None
    assert steady_window(Flow()) is None


def test_a_burst_only_empties(answer: Answer) -> None:
    assert steady_window(flow_of([answer(i, ttft_ms=100 * i) for i in range(60)])) is None
