"""The terminal, Markdown and CSV."""

import csv
import io
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest
from rich.console import Console

from withstand.metrics.agents import Agents
from withstand.metrics.cost import priced
from withstand.metrics.latency import timing_if_good
from withstand.metrics.summary import LeftOut, Summary
from withstand.record import Step
from withstand.report.csv import csv_text
from withstand.report.figures import figures
from withstand.report.html import render_html
from withstand.report.markdown import markdown
from withstand.report.terminal import print_report
from withstand.spec import Price
from withstand.testing.records import make_record

Matches = Callable[[str, str], None]


def printed(summary: Summary, width: int, *, terminal: bool = False) -> str:
    out = io.StringIO()
    print_report(summary, Console(file=out, width=width, force_terminal=terminal))
    return out.getvalue()


def test_the_head_names_the_dataset(sample: Any) -> None:
    summary = msgspec.structs.replace(sample.summary, dataset="sharegpt")
    assert printed(summary, 80).splitlines()[2].endswith(" · sharegpt")
    assert " · sharegpt" in markdown(summary)


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_as_people_read_it(sample: Any, matches: Matches, width: int) -> None:
    text = printed(sample.summary, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text, "no number is cut"
    matches(f"terminal_{width}.txt", text)


def test_goodput_has_a_column_where_the_plan_says_what_is_good(single: Any) -> None:
    stage = single.summary.stages[0]
    without = msgspec.structs.replace(single.summary, stages=(msgspec.structs.replace(stage, request_goodput=None),))
    assert ("| Goodput (req/s) |" in markdown(single.summary), "Goodput" in markdown(without)) == (True, False)
    page, other = (render_html(one, single.series, single.about) for one in (single.summary, without))
    assert ("good rate" in page, "good rate" in other) == (True, False)


def _sent(single: Any, rate_rps: float, attempted: int, **load: Any) -> Summary:
    stage = single.summary.stages[0]
    asked = msgspec.structs.replace(stage.load, arrivals="poisson", request_rate=0.5, max_concurrency=None)
    stage = msgspec.structs.replace(
        stage, load=msgspec.structs.replace(asked, **load), achieved_rate=rate_rps, attempted=attempted
    )
    return cast("Summary", msgspec.structs.replace(single.summary, stages=(stage,)))


def test_a_rate_that_chance_has_made_another_is_said_below_every_table(single: Any) -> None:
    """Asked 0.5 and done 0.29, or asked 1 and done 1.47, looked like a mistake."""
    drawn = _sent(single, 0.9, 18)
    told = f"few arrivals, drawn, were sent at 0.90 ({drawn.stages[0].name}) req/s"
    for text in (printed(drawn, 120), markdown(drawn), render_html(drawn, single.series, single.about)):
        assert told in " ".join(text.split())
    many, near, capped = _sent(single, 0.9, 4000), _sent(single, 0.6, 18), _sent(single, 0.2, 18, max_concurrency=2)
    for other in (many, near, capped, _sent(single, 0.9, 18, arrivals="constant")):
        assert "few arrivals" not in printed(other, 120)


@pytest.mark.parametrize(("rate_rps", "attempted"), [(1.31, 13), (1.31, 4), (0.1, 3), (20.0, 2)])
def test_a_rate_far_off_is_named_however_few_the_arrivals(single: Any, rate_rps: float, attempted: int) -> None:
    """13 arrivals at 2.4 times the rate asked were passed over, as more than chance makes."""
    assert "few arrivals, drawn, were sent at" in printed(_sent(single, rate_rps, attempted), 120)


def test_a_stage_of_one_arrival_has_no_rate_and_says_so(single: Any) -> None:
    alone = _sent(single, 0.5, 1)
    alone = msgspec.structs.replace(
        alone, stages=tuple(msgspec.structs.replace(stage, achieved_rate=None) for stage in alone.stages)
    )
    assert f"one arrival makes no rate ({alone.stages[0].name})" in " ".join(printed(alone, 120).split())


def test_two_answers_are_no_headline_where_a_hundred_are_less(single: Any) -> None:
    """Two that came close together, at 0.2 a second asked, were "16.28 req/s at most"."""
    many = single.summary.stages[0]
    few = msgspec.structs.replace(many, name="few", completed=2, request_throughput=many.request_throughput * 9)
    summary = msgspec.structs.replace(single.summary, stages=(few, many))
    told = {figure.label: figure.note for figure in figures(summary)}
    assert told["Answers"] == f"at {many.name}"
    only = msgspec.structs.replace(single.summary, stages=(few,))
    assert {figure.label: figure.note for figure in figures(only)}["Answers"] == "at few"


def test_a_run_that_fell_as_people_read_it(fallen: Any, matches: Matches) -> None:
    matches("terminal_fallen.txt", printed(fallen.summary, 80))


def test_no_terminal_no_escapes_and_foreign_text_is_text(fallen: Any) -> None:
    assert "\x1b" not in printed(fallen.summary, 80)
    coloured = printed(fallen.summary, 200, terminal=True)
    assert "[red]the client[/red]" in coloured
    assert "\x1b[31m |" not in coloured


def test_long_names_are_folded_and_numbers_stay_whole(single: Any) -> None:
    stage = msgspec.structs.replace(single.summary.stages[0], name="a-name-that-is-far-too-long-for-eighty-columns")
    text = printed(msgspec.structs.replace(single.summary, stages=(stage,)), 80)
    assert "120/120" in text
    assert "…" not in text


def test_a_run_without_stages_is_reported() -> None:
    assert "Nothing was measured." in printed(Summary(stages=()), 80)


def test_markdown_as_people_read_it(sample: Any, matches: Matches) -> None:
    matches("stages.md", markdown(sample.summary))


def test_foreign_text_is_no_markdown(fallen: Any) -> None:
    text = markdown(fallen.summary)
    assert "<b>at" not in text
    assert "\\| \\`x\\`" in text


def test_csv_has_a_row_a_stage_with_full_numbers(sample: Any, matches: Matches) -> None:
    text = csv_text(sample.summary)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["stage"] for row in rows] == [stage.name for stage in sample.summary.stages]
    assert float(rows[3]["ttft_p99_ms"]) == sample.summary.stages[3].ttft.percentiles["p99"]
    assert rows[0]["request_rate_rps"] == ""
    for form in ("itl", "itl_per_token", "itl_request_mean"):
        p50_ms = getattr(sample.summary.stages[0], form).percentiles["p50"]
        assert rows[0][f"{form}_p50_ms"] == ("" if p50_ms is None else str(p50_ms))
    matches("stages.csv", text)


def test_what_a_run_of_agents_is_about(single: Any) -> None:
    """“Answered well 100 %” stood there where no task was solved."""
    agents = Agents()
    for i in range(4):
        steps = [Step(kind="model", took_ns=2_000_000), Step(kind="tool", name="search", took_ns=1_000_000)]
        record = make_record(i, steps=[*steps, *steps[: 1 + i % 2]], correct=i == 0)
        agents.add(record, timing_if_good(record))
    stage = msgspec.structs.replace(single.summary.stages[0], agent=agents.side())
    summary = msgspec.structs.replace(single.summary, stages=(stage,))
    told = {figure.label: f"{figure.value}, {figure.note}" for figure in figures(summary)}
    assert list(told)[:3] == ["Tasks solved", "Steps a task, median", "Task time, median"]
    assert told["Tasks solved"] == "25 %, 1 of 4 tasks"
    page = render_html(summary, single.series, single.about)
    assert page.index("Tasks solved") < page.index("Answered well")
    (row,) = csv.DictReader(io.StringIO(csv_text(summary)))
    assert (row["agent_tasks"], row["agent_solved"], row["agent_success_rate"]) == ("4", "1", "0.25")
    assert float(row["agent_model_p50_ms"]) >= 2


def test_a_name_is_no_formula(fallen: Any) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(fallen.summary))))
    assert rows[0]["stage"] == "'=1+1"


def test_costs_as_people_read_them(sample: Any, matches: Matches) -> None:
    stages = tuple(priced(stage, Price(per_hour=3.6), 0.99) for stage in sample.summary.stages)
    summary = msgspec.structs.replace(sample.summary, stages=stages)
    text = printed(summary, 80)
    begin, end = text.index("tokens cost"), text.index("added.") + len("added.")
    matches("costs.txt", text[begin:end] + "\n")
    assert "| tokens cost | req/s | an hour |" in markdown(summary)
    assert "Within the limits" in markdown(summary)


def test_one_reason_for_several_stages_is_said_of_each(single: Any) -> None:
    why = "it needs 3.59 s, and 1.2 s of the budget is left"
    several = msgspec.structs.replace(single.summary, left_out=(LeftOut("rate-1", why), LeftOut("rate-2", why)))
    assert "left out (rate-1, rate-2): each needs 3.59 s" in printed(several, 120)
    alone = msgspec.structs.replace(single.summary, left_out=(LeftOut("rate-1", why),))
    assert "left out (rate-1): it needs 3.59 s" in printed(alone, 120)
