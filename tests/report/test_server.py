"""The server's side in a line, and what TTFT consists of as far as the server tells."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from withstand.metrics.server import Level, ServerSide
from withstand.metrics.summary import Distribution, StageSummary, Summary
from withstand.report.json import summary_json
from withstand.report.server import server_lines, ttft_split

ENGINE = ServerSide(
    engines=("vLLM",),
    running=Level(8, 12),
    waiting=Level(0, 3),
    kv_share=Level(0.34, 0.5),
    prefix_share=0.02,
    preemptions=3,
)
SPLIT = ServerSide(answered=1200, whole=True, ttft_mean_ms=75.26, queue_mean_ms=0.01, prefill_mean_ms=53.62)


@pytest.fixture
def stage(sample: Any) -> StageSummary:
    first: StageSummary = sample.summary.stages[0]
    return msgspec.structs.replace(first, attempted=1200, ttft=Distribution(n=1200, mean=83.22))


def lines_of(*stages: StageSummary) -> Sequence[str]:
    return list(server_lines(Summary(stages=stages)))


def with_server(stage: StageSummary, server: ServerSide | None, **changes: Any) -> StageSummary:
    return msgspec.structs.replace(stage, server=server and msgspec.structs.replace(server, **changes))


def test_all_that_an_engine_tells(stage: StageSummary) -> None:
    assert lines_of(with_server(stage, ENGINE)) == [
        "server: running p50 8, max 12; waiting p50 0, max 3; KV 34 % (max 50 %); prefix hits 2 %; preempted 3"
    ]


def test_a_stage_is_named_among_others(stage: StageSummary) -> None:
    other = msgspec.structs.replace(stage, name="other", server=None)
    (line,) = lines_of(with_server(stage, ENGINE), other)
    assert line.startswith(f"server ({stage.name}): running")


def test_what_says_nothing_is_not_said(stage: StageSummary) -> None:
    quiet = ServerSide(cpu_share=Level(0.1, 0.2), memory_available_bytes_min=7)
    assert lines_of(with_server(stage, quiet), with_server(stage, None)) == []


def test_a_machine_that_is_full_is_said(stage: StageSummary) -> None:
    assert lines_of(with_server(stage, ServerSide(cpu_share=Level(0.95, 1.0)))) == [
        "server: this machine's CPU 95 % (max 100 %)"
    ]


def test_the_whole_of_ttft(stage: StageSummary) -> None:
    assert ttft_split(with_server(stage, SPLIT)) == (
        "mean TTFT 83.22 ms = queue 0.01 + prefill 53.62 + else in the server 21.63 + outside of it 7.96"
    )


def test_a_gateways_own_time_stands_by_itself(stage: StageSummary) -> None:
    through = {"passing": Level(9, 14), "held": Level(0, 2), "hop_mean_ms": 0.31}
    assert ttft_split(with_server(stage, SPLIT, **through)) == (
        "mean TTFT 83.22 ms = queue 0.01 + prefill 53.62 + else in the server 21.63 + gateway by its metrics 0.31 + "
        "outside of both 7.65"
    )
    own = "its own time to an answer's end 0.31 ms a request"
    assert lines_of(with_server(stage, ServerSide(**through))) == [
        f"server: gateway: under way p50 9, max 14; waiting there p50 0, max 2; {own}"
    ]


@pytest.mark.parametrize("changes", [{"answered": 600}, {"whole": False}, {"answered": None}])
def test_what_is_outside_is_not_known_of_other_answers(stage: StageSummary, changes: dict[str, Any]) -> None:
    assert ttft_split(with_server(stage, SPLIT, **changes)) == (
        "mean TTFT by the server 75.26 ms = queue 0.01 + prefill 53.62 + else in the server 21.63"
    )


def test_parts_alone(stage: StageSummary) -> None:
    assert ttft_split(with_server(stage, SPLIT, ttft_mean_ms=None, prefill_mean_ms=None)) == (
        "in the server, means in ms: queue 0.01"
    )
    assert ttft_split(with_server(stage, SPLIT, ttft_mean_ms=10.0)) == (
        "in the server, means in ms: queue 0.01 + prefill 53.62"
    )
    assert ttft_split(with_server(stage, ENGINE)) is None
    assert ttft_split(with_server(stage, None)) is None


def test_the_summary_has_it_by_stage(stage: StageSummary) -> None:
    stages = (with_server(stage, ENGINE), with_server(stage, None))
    seen, unseen = msgspec.json.decode(summary_json(Summary(stages=stages)))["stages"]
    assert seen["server"]["running"] == {"p50": 8, "max": 12}
    assert seen["server"]["queue_mean_ms"] is None
    assert unseen["server"] is None
