"""``withstand restart``: services ended and started again where they were; and what ``ps`` says."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stacks import SERVER, command, shell, stack, until, up
from withstand.cli.entry import exit_code_of
from withstand.cli.stacks import show_standing
from withstand.processes.identity import Identity, identity_of
from withstand.spec.stack import stack_of
from withstand.stack.local import planned
from withstand.stack.settled import settled_stack
from withstand.stack.standing import standing_of
from withstand.stack.state import StackState, UnitState, log_of, read_state, write_blueprint, write_state
from withstand.stack.supervision import Phase

pytestmark = pytest.mark.usefixtures("state")


def unit(name: str) -> UnitState:
    standing = standing_of("s")
    assert standing
    return next(unit for unit in standing.state.units if unit.name == name)


def leader(name: str) -> Identity:
    found = unit(name).leader
    assert found
    return found


def kill(name: str) -> None:
    os.kill(leader(name).pid, signal.SIGKILL)
    until(lambda: unit(name).phase is Phase.FAILED)


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_one_is_another_process_on_the_same_port_and_the_other_goes_on() -> None:
    standing = up(stack())
    before = {name: leader(name) for name in ("a", "b")}
    assert exit_code_of(["restart", "s", "b", "--quiet"]) == 0
    assert leader("a") == before["a"]
    assert not before["b"].is_alive
    assert leader("b") != before["b"]
    assert (unit("b").phase, unit("b").restarts) == (Phase.READY, 1)
    now = read_state(standing.folder)
    assert now
    assert now.supervisor == standing.state.supervisor
    assert not list((standing.folder / "restart").iterdir())
    noted = [
        line.split("] ")[1] for line in log_of(standing.folder, "b").read_text().splitlines() if "[withstand" in line
    ]
    assert noted == ["b starts", "b has ended, for it was told to start again", "b starts"]


def test_one_that_has_failed_is_told_with_its_cure_and_comes_back(capsys: pytest.CaptureFixture[str]) -> None:
    standing = up(stack())
    kill("b")
    capsys.readouterr()
    assert exit_code_of(["ps"]) == 1
    said = capsys.readouterr().out
    assert "Start it again: withstand restart s b" in said
    row = next(line.split() for line in said.splitlines() if line.startswith("b "))
    assert row.count("-") == 2  # no memory, no number
    assert exit_code_of(["ps", "--json"]) == 1
    [known] = told(capsys)
    assert (known["up"], known["ready"], known["cure"]) == (True, False, "withstand restart s b")
    assert known["base_url"].endswith("/v1")
    assert known["services"][1]["pid"] is None
    assert exit_code_of(["restart", "b"]) == 0
    assert {line.split(":")[0] for line in capsys.readouterr().err.splitlines()} == {"b"}
    log = log_of(standing.folder, "b").read_text()
    assert "] b ended (killed by SIGKILL, perhaps for want of memory)" in log
    assert exit_code_of(["ps", "--json"]) == 0
    assert told(capsys)[0]["ready"]


def test_a_run_says_what_is_dead_and_not_that_the_stack_does_not_come_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"engines": {"a": command(), "b": command()}}))
    assert exit_code_of(["up", str(file), "--quiet"]) == 0
    kill("b")
    capsys.readouterr()
    assert exit_code_of(["run", str(file)]) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert "is up, but not all of it: b ended" in said
    assert "withstand restart s b" in said


def test_one_that_does_not_come_up_again_is_named_and_the_stack_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marker = tmp_path / "once"
    script = (
        f'test -e {marker} && echo "no more" >&2 && exit 7; touch {marker}; exec {sys.executable} {SERVER} {{port}}'
    )
    up(stack(a=command(), b={"kind": "command", "args": ["sh", "-c", script], "served_as": "m"}))
    capsys.readouterr()
    assert exit_code_of(["restart", "s", "b"]) == 3
    assert "b does not come up: ended (exit code 7): no more. Its log: " in capsys.readouterr().err
    standing = standing_of("s")
    assert standing
    assert standing.is_up
    assert unit("a").phase is Phase.READY
    marker.unlink()
    assert exit_code_of(["restart", "s", "b"]) == 0


@pytest.fixture
def in_vain(state: Path, tmp_path: Path) -> Iterator[Path]:
    """The file of a stack whose engine has started thrice in vain, as a supervisor would have written it down."""
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"engines": {"a": command(restart=True, ready_s=1.5)}, "gateway": {}}))
    blueprint, folder = planned(settled_stack(file)), state / "stacks" / "s"
    folder.mkdir(parents=True)
    write_blueprint(folder, blueprint)
    engine = UnitState(name="a", phase=Phase.BACKING_OFF, since_s=1, reason="ended: no more.", vain_starts=3)
    gateway = UnitState(name="gateway", phase=Phase.WAITING, since_s=1)
    with subprocess.Popen(["sleep", "600"]) as supervisor:
        known = identity_of(supervisor.pid)
        assert known
        write_state(folder, StackState(supervisor=known, mark="m", began_s=1, units=(engine, gateway)))
        yield file
        supervisor.kill()


def test_whoever_waits_for_one_that_starts_in_vain_is_told_why(
    in_vain: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "a ended: no more; it is started again\n"
    why = "ended: no more; 3 starts in a row came to nothing. Start "
    monkeypatch.setattr("withstand.stack.restarting._wait_until_heard", lambda *_: None)
    assert exit_code_of(["restart", "s", "gateway"]) == 3
    waits = f"gateway waits for a, which {why}them again: withstand restart s a gateway."
    assert (err := capsys.readouterr().err).startswith(said)
    assert waits in err
    assert exit_code_of(["run", str(in_vain)]) == 3
    assert f"not all of it: a {why}it again: withstand restart s a." in " ".join(capsys.readouterr().err.split())
    assert exit_code_of(["ps"]) == 1
    assert f"a {why}it again: withstand restart s a\n" in capsys.readouterr().out
    assert exit_code_of(["ps", "--json"]) == 1
    assert told(capsys)[0]["cure"] == "withstand restart s a"


def test_whoever_waits_for_one_that_hangs_at_its_start_is_told_so_once_its_time_is_over(
    in_vain: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    standing = standing_of("s")
    assert standing
    engine, gateway = standing.state.units
    starting = replace(engine, phase=Phase.STARTING, vain_starts=0)
    write_state(standing.folder, replace(standing.state, units=(starting, gateway)))
    monkeypatch.setattr("withstand.stack.restarting._wait_until_heard", lambda *_: None)
    monkeypatch.setattr("withstand.stack.patience._LATE_S", 0.5 - 10 - 10 - 2 * 3)
    assert in_vain.exists()
    assert exit_code_of(["restart", "s", "gateway"]) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert "gateway is not ready within 2 s: it waits for a, which is starting; withstand ps s." in said


def test_down_is_heard_while_somebody_waits_for_one_that_hangs_at_its_start(tmp_path: Path) -> None:
    marker = tmp_path / "once"
    hangs = shell(f"test -e {marker} && exec sleep 600; touch {marker}", restart=True, ready_s=60, stop_s=1)
    up(stack_of({"name": "s", "engines": {"a": hangs}, "gateway": {}}, "s"))
    restart = [sys.executable, "-m", "withstand", "restart", "s", "gateway"]
    os.kill(leader("a").pid, signal.SIGKILL)
    until(lambda: unit("a").restarts and unit("a").phase is Phase.STARTING)
    with subprocess.Popen(restart, stderr=subprocess.PIPE, text=True) as waits:
        until(lambda: unit("gateway").phase is Phase.WAITING)
        assert exit_code_of(["down", "s"]) == 0
        assert "was taken down meanwhile" in waits.communicate(timeout=30)[1]
    assert waits.returncode == 3


def test_a_clock_that_was_set_back_makes_no_negative_span(capsys: pytest.CaptureFixture[str]) -> None:
    standing = up(stack(a=command()))
    os.kill(standing.state.supervisor.pid, signal.SIGSTOP)
    later = replace(standing.state.units[0], since_s=time.time() + 3600)
    write_state(standing.folder, replace(standing.state, units=(later,)))
    try:
        assert exit_code_of(["ps"]) == 0
        row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("a "))
        assert " 0 s " in row
        assert " -" not in row
    finally:
        os.kill(standing.state.supervisor.pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("names", "code", "said"),
    [
        (["s", "c"], 2, "The stack 's' has no service 'c'; it has a, b."),
        (["c"], 2, "The stack 's' has no service 'c'; it has a, b."),
        (["s"], 2, "Name the services of 's' that shall start again; it has a, b."),
        ([], 2, "Missing argument"),
    ],
)
def test_what_cannot_be_started_again_is_said(
    names: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    up(stack())
    assert exit_code_of(["restart", *names]) == code
    assert said in capsys.readouterr().err


def test_without_its_supervisor_it_can_only_be_taken_down(capsys: pytest.CaptureFixture[str]) -> None:
    standing = up(stack())
    os.kill(standing.state.supervisor.pid, signal.SIGKILL)
    until(lambda: not standing.state.supervisor.is_alive)
    assert exit_code_of(["restart", "s", "a"]) == 3
    assert "withstand down s, then up again." in capsys.readouterr().err
    until(lambda: not leader("a").is_alive and not leader("b").is_alive)
    assert exit_code_of(["ps"]) == 1
    assert all(line.split().count("-") == 2 for line in capsys.readouterr().out.splitlines()[2:4])


def test_a_file_names_no_stack_of_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, other, alike = (tmp_path / name / "s.json" for name in ("one", "other", "alike"))
    for each, engine in ((file, command()), (other, command("0.1")), (alike, command())):
        each.parent.mkdir()
        each.write_text(json.dumps({"engines": {"a": engine}}))
    assert exit_code_of(["up", str(file), "--quiet"]) == 0
    capsys.readouterr()
    for verb, *more in (["ps"], ["logs"], ["restart", "a"], ["down"]):
        assert exit_code_of([verb, str(other), *more]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"The stack 's' is that of {file}, and not of {other}: [engines.a] is different." in said
        assert "give its name, s, instead of a file" in said
    other.write_text('{"name": "s"}')
    assert exit_code_of(["ps", str(other)]) == 2
    file.write_text('{"name": "s", "edited": true}')
    for each in (alike, file):
        assert exit_code_of(["ps", str(each)]) == 0
    assert exit_code_of(["down", str(file)]) == 0
    assert standing_of("s") is None


def test_the_stack_of_a_file_that_is_down_is_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"engines": {"a": command()}}))
    for _ in range(2):
        assert exit_code_of(["down", str(file)]) == 0
    assert capsys.readouterr().out == "s is not up.\n" * 2
    assert exit_code_of(["down", "s"]) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose child is whose")
def test_one_whose_group_goes_on_without_it_is_told_as_leaving_and_was_away_from_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    up(stack(a=shell("(trap '' TERM; exec sleep 600) &", stop_s=4)))
    killed_s = time.time()
    os.kill(leader("a").pid, signal.SIGKILL)
    until(lambda: unit("a").phase is not Phase.READY)
    assert unit("a").phase is Phase.LEAVING
    assert exit_code_of(["ps", "--json"]) == 0
    [stack_told] = told(capsys)
    assert (stack_told["ready"], stack_told["cure"]) == (False, None)
    assert (stack_told["services"][0]["phase"], stack_told["services"][0]["reason"]) == ("leaving", "has ended")
    until(lambda: unit("a").phase is Phase.FAILED)
    assert time.time() - killed_s > 3.5
    [absence] = unit("a").absences
    assert absence.began_s - killed_s < 2
    assert "killed by SIGKILL" in absence.reason


def test_what_has_just_ended_is_looked_at_again_before_it_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    standing = up(stack())
    supervisor = standing.state.supervisor.pid
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(leader("a").pid, signal.SIGKILL)
    until(lambda: bool(standing.late))
    os.kill(supervisor, signal.SIGCONT)
    show_standing(standing)
    assert "does not write" not in capsys.readouterr().out
