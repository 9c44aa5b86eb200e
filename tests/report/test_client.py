"""What a report says of the client itself."""

import json
from typing import Any

import msgspec

from withstand.metrics.summary import ClientError, Distribution, Off, Summary
from withstand.record import Health, Spread
from withstand.report.client import run_line, stage_line
from withstand.report.html import render_html
from withstand.report.json import summary_json
from withstand.report.numbers import at_most


def of_stage(sample: Any, **facts: Any) -> Any:
    return msgspec.structs.replace(sample.summary.stages[0], **facts)


def test_a_bound_is_never_rounded_down() -> None:
    assert [at_most(value) for value in (0.0, 0.0101, 0.01, 12.3401, 1234.2)] == [
        "≤ 0.00",
        "≤ 0.02",
        "≤ 0.01",
        "≤ 12.35",
        "≤ 1,235",
    ]


def test_a_stage_says_how_true_it_is_in_one_line(single: Any) -> None:
    late = Distribution(n=9, percentiles={"p99": 12.341})
    error = ClientError(ttft=Off(0.01, 0.01, 0.013), itl=Off(0.0, 0.0, 0.0004))
    stage = of_stage(single, client_error=error, lateness=late)
    assert stage_line(stage) == (
        "client error: TTFT p50 ≤ 0.01, p99 ≤ 0.02 ms; ITL p50 ≤ 0.00, p99 ≤ 0.01 ms; sends 12.34 ms late (p99)"
    )


def test_the_p99s_bound_is_at_least_the_medians(single: Any) -> None:
    shown = Distribution(n=900, percentiles={"p50": 51.93, "p99": 119.2})
    stage = of_stage(single, itl=shown, client_error=ClientError(itl=Off(0.3, 1.911, 0.013)))
    assert "ITL p50 ≤ 1.92, p99 ≤ 1.92 ms" in str(stage_line(stage))


def test_a_large_bound_without_a_doubt_says_why(single: Any) -> None:
    shown = Distribution(n=90, percentiles={"p50": 20.0, "p99": 27.5})
    error = ClientError(itl=Off(0.1, 0.01, 10.93))
    few = of_stage(single, itl=shown, completed=15, client_error=error)
    assert "p99 ≤ 10.93 ms (ITL: chance alone moves a percentile of 15 answers by more)" in str(stage_line(few))
    many = of_stage(single, itl=shown, completed=9000, client_error=error)
    assert "chance alone" not in str(stage_line(many))
    assert "chance alone" not in str(run_line(Summary(stages=(few, many)))), "one stage's bound does matter"


def test_a_busy_neighbour_is_named(single: Any) -> None:
    waited = msgspec.structs.replace(single.summary.stages[0].health[0], runqueue_wait_ns=18_600_000_000)
    line = stage_line(of_stage(single, health=(waited,)))
    assert line is not None
    assert line.endswith("; waited for a core 31 % of the time")


def test_our_own_clock_is_named(single: Any) -> None:
    own = msgspec.structs.replace(single.summary.stages[0].health[0], lag=None)
    assert "arrivals stamped by the program's own clock" in str(stage_line(of_stage(single, health=(own,))))
    lost = msgspec.structs.replace(own, lost=True)
    assert "own clock" not in str(stage_line(of_stage(single, health=(lost,)))), "it has told nothing of its clock"


def test_without_streaming_the_whole_answer_is_what_has_an_error(single: Any) -> None:
    stage = of_stage(single, client_error=ClientError(e2el=Off(0.01, 0.01, 0.02)))
    assert str(stage_line(stage)).startswith("client error: E2EL p50 ≤ 0.01, p99 ≤ 0.02 ms; ")


def test_nothing_known_nothing_said(single: Any) -> None:
    assert stage_line(of_stage(single, client_error=None, health=(), lateness=Distribution(n=0))) is None


def test_the_run_shows_the_worst_stage(single: Any) -> None:
    stages = tuple(of_stage(single, client_error=ClientError(ttft=Off(p99=ms))) for ms in (0.1, 0.4, 0.2))
    assert str(run_line(Summary(stages=stages))).startswith("client error, worst stage: TTFT p99 ≤ 0.40 ms")


def test_the_page_has_all_of_it(sample: Any) -> None:
    page = render_html(sample.summary, sample.series, sample.about)
    section = page[page.index('id="client"') : page.index('id="circumstances"')]
    stages = page[page.index('id="stages"') : page.index('id="charts"')]
    assert "Client error, worst stage: TTFT p50 ≤" in stages
    assert page.count("Client error, worst stage") == 1, "said once, under the numbers it is of"
    for text in ("39 of 65,536", "32 / 28,232", "48 MiB", "<td>4 %</td>", "<td>0.2 %</td>"):
        assert text in section
    assert section.count("<tr>") == 2 * (1 + len(sample.summary.stages))


def test_a_lost_worker_has_its_row(single: Any) -> None:
    lost = Health(worker=3, sent=1, finished=0, wall_ns=0, cpu_ns=0, lost=True)
    stage = of_stage(single, health=(*single.summary.stages[0].health, lost))
    page = render_html(msgspec.structs.replace(single.summary, stages=(stage,)), single.series, single.about)
    assert "rate-4, 3: lost" in page


def test_json_has_every_fact(single: Any) -> None:
    (stage,) = json.loads(summary_json(single.summary))["stages"]
    check = stage["self_check"]
    assert check["error_ms"]["ttft"].keys() == {"mean", "p50", "p99"}
    assert check["error_ms"].keys() == {"ttft", "tpot", "itl", "e2el", "response"}
    assert (check["never_sent"], check["unsure_gaps"]) == (0, 0)
    (worker,) = check["workers"]
    assert msgspec.convert(worker, Health) == single.summary.stages[0].health[0]
    assert msgspec.convert(worker["lag"], Spread).p99_ns == 96_255
