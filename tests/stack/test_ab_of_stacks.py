"""``withstand ab STACK.toml``: brought up, both targets measured in turn, taken down."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from outcomes import code
from withstand.stack.standing import standings

STACK = """
[engines.one]
kind = "llamacpp"
max_sequences = 1
threads = 1

[engines.two]
kind = "llamacpp"
max_sequences = 1
threads = 1

[plan.targets.first]
service = "one"

[plan.targets.second]
service = "two"

[plan.workload]
dataset = "random"
num_prompts = 2
options = { input_len = 8, output_len = 2 }

[[plan.stages]]
max_concurrency = 1
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "state"))


def ab(folder: Path, text: str, *more: str) -> "subprocess.CompletedProcess[str]":
    (folder / "s.toml").write_text(text)
    command = [sys.executable, "-m", "withstand", "ab", "s.toml", *more]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.engine
@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="the engine's extra is not installed")
def test_two_engines_of_one_stack_are_measured_in_turn(tmp_path: Path) -> None:
    done = ab(tmp_path, STACK, "--blocks", "4", "--output-dir", "r", "--num-warmups", "0")
    assert (tmp_path / "r").is_dir(), done.stdout + done.stderr
    assert code(done, tmp_path / "r") in {0, 3}, done.stderr  # so few answers may tell nothing
    blocks = sorted(path.parent.name for path in (tmp_path / "r").rglob("run.json"))
    assert len(blocks) == 8, done.stderr
    targets = {json.loads(path.read_text())["target"] for path in (tmp_path / "r").rglob("run.json")}
    assert len(targets) == 2
    assert (tmp_path / "r" / "comparison.json").exists()
    assert standings() == []


def test_a_stack_whose_plan_has_not_two_targets_is_refused_before_it_comes_up(tmp_path: Path) -> None:
    done = ab(tmp_path, STACK.replace('[plan.targets.second]\nservice = "two"\n', ""))
    assert done.returncode == 2
    assert "needs two [plan.targets.NAME]" in done.stderr
    assert standings() == []


def test_a_wrong_number_of_blocks_is_said_before_it_comes_up(tmp_path: Path) -> None:
    done = ab(tmp_path, STACK, "--blocks", "2")
    assert done.returncode == 2
    assert "starting" not in done.stderr
    assert "--blocks 2" in done.stderr


def test_three_targets_are_counted_and_who_measures_them_is_named(tmp_path: Path) -> None:
    done = ab(tmp_path, STACK.replace("[plan.workload]", '[plan.targets.third]\nservice = "two"\n\n[plan.workload]', 1))
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "s.toml has 3 targets (first, second, third)" in said
    assert "`withstand run s.toml`" in said
    assert standings() == []
