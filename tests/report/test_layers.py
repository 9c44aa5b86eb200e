"""What each layer costs, as it is shown: one column a layer that somebody has told of."""

from typing import Any

import msgspec
import pytest

from withstand.cli.output import rendered
from withstand.metrics.agents import Agents
from withstand.metrics.latency import timing_if_good
from withstand.metrics.layers import Layer, Layers
from withstand.metrics.summary import StageSummary, Summary
from withstand.record import Step
from withstand.report.html import render_html
from withstand.report.json import summary_json
from withstand.report.markdown import markdown
from withstand.report.terminal import print_report
from withstand.testing.records import make_record

LAYERS = Layers(100.0, (Layer("gateway", 1.5, 0.015), Layer("decode", 80.0, 0.8), Layer("else", 18.5, 0.185)))


@pytest.fixture
def summary(sample: Any) -> Summary:
    first: StageSummary = sample.summary.stages[0]
    told: Summary = msgspec.structs.replace(sample.summary, stages=(msgspec.structs.replace(first, layers=LAYERS),))
    return told


def test_text_and_markdown_have_a_column_for_each(summary: Summary) -> None:
    text = rendered(lambda console: print_report(summary, console))
    for cell in ("time by layer", "1.50 (1.5 %)", "80.00 (80 %)", "18.50 (18.5 %)"):
        assert cell in text
    assert "| time by layer | mean E2EL ms | gateway | decode | else |" in markdown(summary)


def test_of_an_agent_decode_is_by_its_own_word(summary: Summary) -> None:
    assert "decode as heard" in markdown(summary)
    call = Step(kind="model", took_ns=3, ttft_ns=1)
    agents = Agents()
    agents.add(record := make_record(steps=[call]), timing_if_good(record))
    stage = msgspec.structs.replace(summary.stages[0], agent=agents.side())
    told = markdown(msgspec.structs.replace(summary, stages=(stage,)))
    assert "decode as heard" not in told
    assert "decode as the agent tells of its model's calls" in told


def test_json_has_the_numbers(summary: Summary) -> None:
    stage = msgspec.json.decode(summary_json(summary))["stages"][0]
    assert stage["layers"]["parts"][0] == {"name": "gateway", "mean_ms": 1.5, "share": 0.015}


def test_the_page_has_the_table(summary: Summary, sample: Any) -> None:
    assert "Time by layer" in render_html(summary, sample.series[:1], sample.about)


def test_there_is_no_table_where_nobody_has_told_anything(sample: Any) -> None:
    assert "time by layer" not in markdown(sample.summary)
