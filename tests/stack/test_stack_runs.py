"""Runs of a stack that was edited meanwhile, and runs of a stack that are gone on with at its new addresses."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from outcomes import code
from withstand.app.journal import Journal
from withstand.app.stages import all_stages
from withstand.cli.entry import exit_code_of
from withstand.record import Status
from withstand.runs import RunFolder, RunState
from withstand.spec import parse_plan
from withstand.stack.standing import standings
from withstand.stack.taking_down import take_down

STACK = """
[engines.a]
kind = "sim"
max_sequences = 4

[engines.b]
kind = "sim"

[plan]
num_warmups = 0

[plan.workload]
dataset = "random"
num_prompts = {prompts}
options = {{ input_len = 8, output_len = {tokens} }}

[[plan.stages]]
max_concurrency = 1
"""
SIDES = '[plan.targets.one]\nservice = "a"\n[plan.targets.two]\nservice = "b"\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    yield
    for standing in standings():
        assert not take_down(standing)


def write(prompts: int = 2, tokens: int = 2, more: str = "", of: str = STACK) -> None:
    Path("e.toml").write_text(of.format(prompts=prompts, tokens=tokens) + more)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def withstand(*argv: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "withstand", *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def interrupted(*argv: str, when: str) -> str:
    """What it says when it gets a Ctrl-C as soon as a file of that pattern has something in it."""
    command = [sys.executable, "-m", "withstand", *argv]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    give_up_s = time.monotonic() + 120
    while not any(path.stat().st_size for path in Path().glob(when)):
        assert time.monotonic() < give_up_s
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    return " ".join(process.communicate(timeout=120)[1].split())


def test_what_is_up_already_is_not_told_of_as_if_it_had_just_started(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    assert exit_code_of(["up", "e.toml"]) == 0
    told = said(capsys)
    assert "a: ready after" in told
    assert "already" not in told
    assert exit_code_of(["run", "e.toml"]) in {0, 3}  # 3: a busy machine, which was the limit
    told = said(capsys)
    assert "a: up already, for " in told
    assert "ready after" not in told


def test_another_plan_is_measured_at_the_stack_that_is_up(tmp_path: Path) -> None:
    write()
    assert exit_code_of(["up", "e.toml", "--quiet"]) == 0
    write(prompts=3, more='[plan.target]\nservice = "b"\n')
    Path("p.toml").write_text("num_warmups = 0\nworkload = { num_prompts = 4, options = { output_len = 2 } }\n")
    done = withstand("run", "e.toml", "--plan", "p.toml", "--output-dir", "p")
    assert code(done, tmp_path / "p") == 0, done.stderr
    assert len(list(RunFolder.open(Path("p")).records())) == 4
    [standing] = standings()
    where = {process.name: process.base_url for process in standing.blueprint.processes}
    assert RunFolder.open(Path("p")).manifest.target == where["b"], "the file's own target, its load another"


def test_another_engine_is_said_by_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    assert exit_code_of(["up", "e.toml", "--quiet"]) == 0
    assert exit_code_of(["up", "e.toml"]) == 2
    assert "The stack 'e' is up already: withstand down e, or give this one another name" in said(capsys)
    write(of=STACK.replace("max_sequences = 4", "max_sequences = 5") + "[gateway]\n")
    for verb, words in (("up", "is up already, and not as this file has it"), ("run", "is not the one of this file")):
        assert exit_code_of([verb, "e.toml"]) == 2
        told = said(capsys)
        assert words in told
        assert "[engines.a] and [gateway] are different" in told
        assert "withstand down e" in told


def test_runs_that_were_cut_go_on_where_the_stack_is_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(prompts=20, tokens=10, more=SIDES)
    told = interrupted("run", "e.toml", "--output-dir", "r", when="r/one/records*")
    assert "`withstand run e.toml --resume r` goes on with all targets." in told
    assert "`withstand run e.toml --resume r/one` goes on with it." in told
    assert standings() == []
    for folder in ("r", "r/one"):
        assert exit_code_of(["run", "--resume", folder]) == 2
        assert f"give its file: withstand run e.toml --resume {folder}." in said(capsys)
    assert RunFolder.open(Path("r/one")).manifest.state is RunState.INTERRUPTED
    write(prompts=20, tokens=10, of=STACK.replace("max_sequences = 4", "max_sequences = 5"))
    assert exit_code_of(["run", "e.toml", "--resume", "r"]) == 2
    assert "[engines.a] is different" in said(capsys)
    Path("r/stack.json").rename("kept")
    for argv in (["run", "e.toml", "--resume", "r"], ["run", "--resume", "r"]):
        assert exit_code_of(argv) == 2
        assert "r was measured at the stack of e.toml, and has lost its stack.json" in said(capsys)
    os.mkfifo("r/stack.json")
    assert exit_code_of(["run", "e.toml", "--resume", "r"]) == 3
    assert "r/stack.json, which tells of the stack, is damaged: it is no file. Measure anew." in said(capsys)
    Path("kept").rename("r/stack.json")
    write(prompts=1, tokens=1)  # what was begun keeps its plan
    done = withstand("run", "e.toml", "--resume", "r")
    assert code(done, tmp_path / "r") in {0, 3}, done.stderr
    assert "e.toml has another [plan] by now; r goes on by the one that it began with." in done.stderr
    for name in ("one", "two"):
        run = RunFolder.open(Path("r") / name)
        whole = {index for index, entry in run.manifest.in_order() if entry.state is RunState.DONE}
        sent = [record.status for record in run.records() if record.stage in whole]
        assert (run.manifest.state, sent) == (RunState.DONE, [Status.OK] * 20)
    assert standings() == []


def test_sides_in_turn_go_on_where_they_are_now(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(prompts=8, tokens=10, more=SIDES)
    told = interrupted("ab", "e.toml", "--blocks", "4", "--output-dir", "r", when="r/*/records*")
    assert "`withstand ab e.toml --resume r` measures" in told
    assert exit_code_of(["ab", "--resume", "r"]) == 2
    assert "give its file: withstand ab e.toml --resume r." in said(capsys)
    again = interrupted("ab", "e.toml", "--resume", "r", when="r/b-01/records*")
    assert "`withstand ab e.toml --resume r` measures" in again
    first = RunFolder.open(tmp_path / "r" / "a-01")
    assert (first.manifest.state, {record.status for record in first.records()}) == (RunState.DONE, {Status.OK})
    assert standings() == []


def test_what_was_not_measured_at_a_stack_has_no_use_for_one(capsys: pytest.CaptureFixture[str]) -> None:
    write()
    for folder, why in (("no", "there is nothing of this name"), (".", "it has no run.json")):
        assert exit_code_of(["run", "e.toml", "--resume", folder]) == 2
        assert f"{folder} is no run folder: {why}." in said(capsys)
    plan = parse_plan({"output_dir": "r"})
    Journal.create(plan, all_stages(plan), ["run", "p.toml", "--base-url", "http://127.0.0.1:9"])
    assert exit_code_of(["run", "e.toml", "--resume", "r"]) == 2
    assert "r was not measured at a stack; leave e.toml out." in said(capsys)
