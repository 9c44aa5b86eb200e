"""What each layer costs, as it is shown: one column a layer that somebody has told of."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pages import CHROMIUM, POLICY, attribute, browse
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
MANY = ("edge", "agent", "gateway queue", "gateway", "prefill", "decode", "else")


@pytest.fixture
def summary(sample: Any) -> Summary:
    first: StageSummary = sample.summary.stages[0]
    told: Summary = msgspec.structs.replace(sample.summary, stages=(msgspec.structs.replace(first, layers=LAYERS),))
    return told


def test_text_and_markdown_have_a_column_for_each(summary: Summary) -> None:
    text = rendered(lambda console: print_report(summary, console))
    assert re.search(r"time by layer +mean E2EL ms +gateway +decode +else\n.* 1\.50 +80\.00 +18\.50", text)
    assert re.search(r"\n +1\.5 % +80 % +18\.5 %", text)
    assert "| time by layer | mean E2EL ms | gateway | decode | else |" in markdown(summary)
    assert "| 1.50 (1.5 %) | 80.00 (80 %) | 18.50 (18.5 %) |" in markdown(summary)


@pytest.fixture
def stacked(summary: Summary) -> Summary:
    """Of a whole stack, most of whose layers take next to nothing."""
    parts = tuple(Layer(name, 2233.05 if name == "decode" else 0.4, 0.00005) for name in MANY)
    stage = msgspec.structs.replace(summary.stages[0], layers=Layers(8211.5, parts))
    return msgspec.structs.replace(summary, stages=(stage,))


def test_many_layers_are_one_table_of_short_cells(stacked: Summary) -> None:
    text = rendered(lambda console: print_report(stacked, console))
    assert max(map(len, text.splitlines())) <= 80
    assert "under 0.1 %" not in text
    assert re.search(r"\n +(< 0\.1 % *){7}\n", text)
    assert re.search(r"\| 0\.40 \(\S+ 0\.1 %\) \|", markdown(stacked))


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_no_layer_lies_outside_of_the_page(stacked: Summary, sample: Any, tmp_path: Path) -> None:
    ask = """<script>addEventListener("load", () => {
      const box = document.querySelector('[aria-label="Time by layer"]');
      document.documentElement.dataset.hidden = String(box.scrollWidth - box.clientWidth);
    });</script>"""
    page = render_html(stacked, sample.series[:1], sample.about)
    document, _ = browse(POLICY.sub("", page).replace("</body>", f"{ask}</body>"), tmp_path, 1400)
    assert attribute(document, "hidden") == "0"


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
