"""What each layer costs: parts that add up to the mean E2EL, whatever anybody claims."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.latency import timing_if_good
from withstand.metrics.layers import Layer, Layers, LayerSums, durations_ms, layers_of
from withstand.metrics.server import ServerSide
from withstand.record import Record, Step, decode_record, encode_record
from withstand.testing.records import make_failure, make_record
from withstand.testing.truth.schedule import Schedule

PACE = Schedule(ttft_ms=60, itl_ms=10, tokens=5)
ENGINE = ServerSide(whole=True, answered=1, ttft_mean_ms=55.0, queue_mean_ms=4.0, prefill_mean_ms=45.0)


def sums_of(*records: Record) -> LayerSums:
    sums = LayerSums()
    for record in records:
        sums.add(record, timing_if_good(record))
    return sums


def told(timing: str | None, server: ServerSide | None = None) -> Layers:
    layers = layers_of(sums_of(make_record(schedule=PACE, server_timing=timing)), server, 1)
    assert layers is not None
    return layers


def means(layers: Layers) -> dict[str, float]:
    return {part.name: pytest.approx(part.mean_ms) for part in layers.parts}


def test_each_layer_has_its_part() -> None:
    layers = told("hop;dur=1.5, engine;dur=3, queue;dur=2, edge;dur=0.5", ENGINE)
    assert means(layers) == {
        "edge": 0.5,
        "gateway queue": 2.0,
        "gateway": 1.5,
        "engine queue": 4.0,
        "prefill": 45.0,
        "decode": 40.0,
        "else": 7.0,
    }
    assert layers.e2el_mean_ms == pytest.approx(100)


def test_an_engine_tells_its_prefill_at_the_end_of_its_answer() -> None:
    """As llama.cpp does, whose metrics do not; a hop's own word of it goes before, and it must fit."""
    record = make_record(schedule=PACE, prefill_ns=50_000_000)
    layers = layers_of(sums_of(record), None, 1)
    assert layers is not None
    assert means(layers) == {
        "prefill": 50.0,
        "decode": 40.0,
        "else": 10.0,
    }
    both = make_record(schedule=PACE, prefill_ns=50_000_000, server_timing="prefill;dur=20")
    header = layers_of(sums_of(both), None, 1)
    assert header is not None
    assert header.part("prefill") == Layer("prefill", 20.0, 0.2)
    assert layers_of(sums_of(make_record(schedule=PACE, prefill_ns=70_000_000)), None, 1) is None


def test_the_edge_tells_what_it_cannot_subtract() -> None:
    edge = told("edge-whole;dur=0055, edge-behind;dur=0052").part("edge")
    assert edge is not None
    assert edge.mean_ms == pytest.approx(3)


def test_an_agents_calls_have_their_parts_too() -> None:
    call = Step(kind="model", took_ns=30_000_000, ttft_ns=20_000_000, server_timing="hop;dur=1, queue;dur=2")
    record = make_record(schedule=PACE, server_timing="tool;dur=5, agent;dur=4")
    record = msgspec.structs.replace(record, steps=[call, Step(kind="tool", took_ns=5_000_000), call])
    server = msgspec.structs.replace(ENGINE, answered=2, prefill_mean_ms=15.0)
    layers = layers_of(sums_of(record), server, 1)
    assert layers is not None
    assert means(layers) == {
        "agent": 4.0,
        "tools": 5.0,
        "gateway queue": 4.0,
        "gateway": 2.0,
        "engine queue": 8.0,
        "prefill": 30.0,
        "decode": 20.0,
        "else": 27.0,
    }


def agents_layers(prefill_ms: float, end_ms: int) -> dict[str, float]:
    """Of a task whose call decodes for 50 ms, to the answer's end; its last token was heard at 100 ms."""
    call = Step(kind="model", took_ns=90_000_000, ttft_ns=40_000_000, server_timing=f"prefill;dur={prefill_ms}")
    record = make_record(schedule=PACE, server_timing="agent;dur=4", steps=[call], end_ns=end_ms * 1_000_000)
    layers = layers_of(sums_of(record), None, 1)
    assert layers is not None
    return means(layers)


def test_an_agents_model_that_decodes_on_unheard_keeps_its_prefill() -> None:
    """E2EL ends with the last token heard; what a schema hides of the model's decode is behind it."""
    told = {"agent": 4.0, "prefill": 50.0, "decode": 40.0, "else": 6.0}
    assert agents_layers(50, end_ms=110) == told


def test_a_part_that_is_a_little_too_large_fills_what_is_left() -> None:
    assert agents_layers(50, end_ms=100) == {"agent": 4.0, "prefill": 46.0, "decode": 50.0, "else": 0.0}
    assert "prefill" not in agents_layers(60, end_ms=100)


@given(
    st.lists(st.floats(0, 200), min_size=5, max_size=5),
    st.floats(0, 100),
    st.floats(0, 100),
    st.booleans(),
)
def test_the_parts_always_add_up(durations: list[float], queue: float, prefill: float, whole: bool) -> None:
    names = ("edge", "agent", "queue", "hop", "prefill")
    header = ", ".join(f"{name};dur={ms:.3f}" for name, ms in zip(names, durations, strict=True))
    server = msgspec.structs.replace(ENGINE, queue_mean_ms=queue, prefill_mean_ms=prefill, whole=whole)
    layers = layers_of(sums_of(make_record(schedule=PACE, server_timing=header)), server, 1)
    if layers is not None:
        assert sum(part.mean_ms for part in layers.parts) == pytest.approx(layers.e2el_mean_ms)
        assert sum(part.share for part in layers.parts) == pytest.approx(1)
        assert all(part.mean_ms >= 0 for part in layers.parts)


def test_metrics_of_other_answers_than_ours_do_not_count() -> None:
    for changes in ({"answered": 7}, {"whole": False}, {"answered": None}):
        layers = told("hop;dur=1", msgspec.structs.replace(ENGINE, **changes))
        assert [part.name for part in layers.parts] == ["gateway", "decode", "else"]


def test_the_time_of_prefill_elsewhere_goes_before_the_means() -> None:
    prefill = told("hop;dur=1, prefill;dur=20, decode;dur=30", ENGINE).part("prefill")
    assert prefill is not None
    assert prefill.mean_ms == pytest.approx(20)


def test_nobody_has_told_anything() -> None:
    assert layers_of(sums_of(make_record(schedule=PACE), make_failure(1)), None, 2) is None
    assert layers_of(LayerSums(), ENGINE, 0) is None


def test_sums_of_parts_are_those_of_the_whole() -> None:
    records = [make_record(i, PACE, server_timing=f"hop;dur={i}") for i in range(4)]
    parts = sums_of(*records[:1])
    parts.merge(sums_of(*records[1:]))
    assert vars(parts) == vars(sums_of(*records))


@pytest.mark.parametrize(
    ("header", "durations"),
    [
        ("hop;dur=0.115, engine;dur=0.286", {"hop": 0.115, "engine": 0.286}),
        ('miss, db;desc="a";dur="53.2"', {"db": 53.2}),
        ("hop;dur=1,hop;dur=2", {"hop": 3.0}),
        ("Hop ; DUR=x, ;;, total;dur=1.2.3", {}),
        ("", {}),
    ],
)
def test_headers_as_they_come(header: str, durations: dict[str, float]) -> None:
    assert durations_ms(header) == durations


def test_a_record_of_the_first_schema_has_none() -> None:
    record = make_record(server_timing="hop;dur=1")
    assert decode_record(encode_record(record)) == record
    assert decode_record(encode_record(make_record())).server_timing is None
