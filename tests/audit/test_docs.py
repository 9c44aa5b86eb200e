"""The page on auditing shows what is printed, and counts as the code does."""

import re
from pathlib import Path

import pytest

from foreign import VLLM_BLOCK
from withstand.cli.entry import exit_code_of
from withstand.metrics.quantiles import samples_needed

PAGE = (Path(__file__).parents[2] / "docs" / "auditing.md").read_text("utf-8")


def test_its_example_is_what_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "block.txt").write_text(VLLM_BLOCK, "utf-8")
    exit_code_of(["audit", str(tmp_path / "block.txt")])
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.strip("\n").splitlines())
    assert printed in PAGE


def test_its_numbers_of_answers_are_the_rule_s() -> None:
    told = re.search(r"needs n = (\d+).*?gives (\d+) for a p90 and (\d+) for a median", PAGE, re.DOTALL)
    assert told
    assert [int(n) for n in told.groups()] == [samples_needed(p) for p in (99, 90, 50)]
