"""The panel: what it tells, in as much room as there is, of whatever a server or a folder may say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from withstand.cli.panel import COLUMNS_MIN, ROWS_MIN, panel
from withstand.cli.sparkline import sparkline
from withstand.metrics.live import BracketNow, LiveStage, ServerNow, Snapshot, StageNow, Told
from withstand.spec import Poisson, Slo, Stage
from withstand.testing.records import make_failure, make_record

STAGE = Stage(name="rate-8", arrivals=Poisson(8.0), num_prompts=200)
NOW_NS = 20_000_000_000


def snapshot(*, stages: int = 1, said: str = "model", error: str = "boom") -> Snapshot:
    live = LiveStage(0, STAGE, Slo(ttft=500.0), 0)
    for i in range(100):
        live.add(make_record(i, sent_ms=100.0 * i), NOW_NS)
    for i in range(5):
        live.add(make_failure(100 + i, sent_ms=15_000.0, error=error), NOW_NS)
    for second in (10, 20):
        live.tell(Told(elapsed_s=second, sent=8 * second, done=7 * second, failed=5, in_flight=9, output_tokens=100))
    current = live.current(NOW_NS)
    running = StageNow(
        index=0, name=said, state="running", planned=200, done=140, elapsed_s=20.0, share=0.7, rate_asked=8.0
    )
    planned = [StageNow(index=i, name=f"later-{i}", state="planned") for i in range(1, stages)]
    return Snapshot(
        state="running",
        target="http://127.0.0.1:1",
        model=said,
        elapsed_s=25.0,
        left_s=100.0,
        stages=(running, *planned),
        current=current,
        server=ServerNow(levels={"running": 8.0, "waiting": 2.0, "kv_share": 0.43}),
        limit=BracketNow("rate", 8.0, 12.0, 5),
    )


def text(snapshot: Snapshot, width: int = 100, height: int = 40) -> str:
    return "\n".join(line.plain for line in panel(snapshot, width, height))


def test_it_tells_how_the_run_stands() -> None:
    told = text(snapshot(stages=3))
    for part in (
        "25 s, about 1 min 40 s left",
        "▶ model",
        "70 % 140/200  9 s left",
        "· later-2",
        "asked 8  sent 8.00",
        "9 in flight",
        "5 failed",
        "95.2 % good",
        "TTFT",
        "8 running  2 waiting  KV cache 43 %",
        "between 8 and 12 req/s, 5 loads tried",
        "5 http_error: boom",
        "requests failed: 5 of 105",
    ):
        assert part in told, told


@settings(deadline=None)
@given(
    width=st.integers(COLUMNS_MIN - 1, 200),
    height=st.integers(ROWS_MIN - 1, 60),
    stages=st.integers(1, 60),
    said=st.text(),
)
def test_it_keeps_to_its_room_and_lets_nothing_through(width: int, height: int, stages: int, said: str) -> None:
    lines = panel(snapshot(stages=stages, said=said, error=said or "x"), width, height)
    assert len(lines) <= height
    for line in lines:
        assert cell_len(line.plain) <= width
        assert line.plain.isprintable()


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (None, 16.9, "below 16.9 req/s, 3 loads"),
        (4.0, None, "above 4 req/s, 3 loads"),
        (None, None, "not known yet, 3"),
    ],
)
def test_a_limit_without_an_end(low: float | None, high: float | None, said: str) -> None:
    assert said in text(replace(snapshot(), limit=BracketNow("rate", low, high, 3)))


def test_where_stages_have_no_room_they_are_counted() -> None:
    told = text(snapshot(stages=50), 80, 23)
    assert "0 before these, " in told
    assert "requests failed" in told


def test_stages_to_come_are_counted_among_those_after() -> None:
    told = replace(snapshot(stages=3), to_come=2)
    assert "0 before these, 2 after" in text(told)
    assert "later-2" in text(told)
    assert "0 before these, 3 after" in text(told, 80, text(snapshot(stages=3), 80).count("\n") + 1)


def test_before_a_stage_begins_there_is_only_the_plan() -> None:
    assert text(Snapshot(state="running", stages=(StageNow(index=0, name="a", state="planned"),))).count("\n") == 1


@pytest.mark.parametrize(
    ("values", "width", "drawn"),
    [
        ((), 10, ""),
        ((0.0, 0.0), 10, "▁▁"),
        ((0.0, 5.0, None, 10.0), 10, "▁▅ █"),
        (tuple(map(float, range(16))), 4, "▂▄▆█"),
    ],
)
def test_sparklines(values: tuple[float | None, ...], width: int, drawn: str) -> None:
    assert sparkline(values, width) == drawn


@settings(deadline=None)
@given(values=st.lists(st.none() | st.floats(0, 1e12), max_size=300), width=st.integers(1, 80))
def test_a_sparkline_keeps_to_its_width(values: list[float | None], width: int) -> None:
    assert len(sparkline(values, width)) <= width
