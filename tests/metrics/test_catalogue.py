import os
from pathlib import Path

from withstand.metrics.agents import MEASURED, SUCCESS
from withstand.metrics.catalogue import AGENT, CATALOGUE, catalogue_markdown
from withstand.metrics.doubts import RULES, DoubtKind
from withstand.metrics.summary import AgentSide, StageSummary

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_documentation_page_is_up_to_date() -> None:
    if os.environ.get("WITHSTAND_UPDATE_SNAPSHOTS"):
        PAGE.write_text(catalogue_markdown(), "utf-8")
    assert PAGE.read_text("utf-8") == catalogue_markdown()


def test_every_metric_is_a_field_of_the_summary() -> None:
    agents = {key.removeprefix(AGENT) for key in CATALOGUE if key.startswith(AGENT)}
    others = {key for key in CATALOGUE if not key.startswith(AGENT)}
    assert others <= set(StageSummary.__struct_fields__)
    assert agents == {SUCCESS, *MEASURED} <= set(AgentSide.__struct_fields__)


def test_every_doubt_says_when_it_is_raised() -> None:
    assert set(RULES) == set(DoubtKind)
