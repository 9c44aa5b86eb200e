"""The pages about the truth server and about conformance say what the code does."""

import re
from pathlib import Path

import pytest

from withstand.testing import Right, RightRun
from withstand.testing.truth.asked import Play, altered
from withstand.testing.truth.behaviours import BEHAVIOURS, style_of, table
from withstand.testing.truth.schedule import Schedule
from withstand.testing.truth.served import Served

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "truth-server.md").read_text("utf-8")
CONFORMANCE = (DOCS / "conformance.md").read_text("utf-8")


def test_the_table_is_the_registrys() -> None:
    assert table() in PAGE, "put the output of `python -m withstand.testing.truth --list-behaviours` into the page"


def test_every_field_of_the_log_is_explained() -> None:
    missing = [field for field in Served.__struct_fields__ if f"`{field}`" not in PAGE]
    assert not missing


@pytest.mark.parametrize("text", re.findall(r"`truth:([^`]*)`|X-Truth: ([^\n`]*)", PAGE))
def test_examples_can_be_understood(text: tuple[str, str]) -> None:
    play = altered(Play(Schedule()), "".join(text))
    assert play.behaviour is None or style_of(play.behaviour)


@pytest.mark.parametrize("struct", [Right, RightRun])
def test_every_field_of_what_is_right_is_explained(struct: type[Right | RightRun]) -> None:
    missing = [field for field in struct.__struct_fields__ if f"`{field}`" not in CONFORMANCE]
    assert not missing


@pytest.mark.parametrize("page", [PAGE, CONFORMANCE])
def test_there_is_an_example_in_python_that_runs(page: str) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(example, "docs", "exec"), {})


def test_every_behaviour_says_what_a_right_client_reports() -> None:
    assert all(b.does and b.client for b in BEHAVIOURS.values())
