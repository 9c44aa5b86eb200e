"""Stacks of real processes: up, down, and what is left when any part is killed."""

import contextlib
import fcntl
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from stacks import SERVER, command, held, stack, until, up
from withstand.cli.entry import exit_code_of
from withstand.errors import EngineError, UsageError
from withstand.processes.identity import Identity, children_of, identity_of, in_session
from withstand.spec.stack import stack_of
from withstand.stack import taking_down
from withstand.stack.blueprint import Blueprint, Undo
from withstand.stack.launching import announced
from withstand.stack.local import bring_up, planned
from withstand.stack.standing import Standing, standing_of, standings
from withstand.stack.state import read_state
from withstand.stack.supervision import Phase
from withstand.stack.taking_down import _leftovers, take_down

pytestmark = pytest.mark.usefixtures("state")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells whose child is whose")


def everybody(standing: Standing) -> list[Identity]:
    """All processes of a stack, however deep."""
    found, new = [], [standing.state.supervisor]
    while new:
        found += new
        new = [child for parent in new for child in children_of(parent.pid)]
    return found


def test_up_and_down_again_and_again_leaves_nothing(state: Path) -> None:
    for _ in range(3):
        standing = up(stack())
        assert standing.is_up
        assert {unit.phase for unit in standing.state.units} == {Phase.READY}
        assert [each.name for each in standings()] == ["s"]
        alive = everybody(standing)
        ports = [process.port for process in standing.blueprint.processes]
        assert take_down(standing) == []
        assert not any(one.is_alive for one in alive)
        assert standings() == []
        assert list(state.iterdir()) == []
        for port in ports:
            with socket.socket() as free:
                free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                free.bind(("127.0.0.1", port))


@LINUX
@pytest.mark.parametrize("victim", ["supervisor", "keeper", "service", "all but grandchildren"])
def test_whoever_is_killed_down_leaves_nothing(victim: str) -> None:
    standing = up(stack(a=command("2")))
    alive = everybody(standing)
    assert len(alive) == 5  # supervisor, keeper, service, its two children
    victims = {"supervisor": alive[:1], "keeper": alive[1:2], "service": alive[2:3]}.get(victim, alive[:3])
    for one in victims:
        with contextlib.suppress(ProcessLookupError):  # a keeper's end is its service's
            os.kill(one.pid, signal.SIGKILL)
    until(lambda: not victims[0].is_alive)
    now = standing_of("s")
    assert now
    assert take_down(now) == []
    left = [one for one in alive if one.is_alive]
    for one in left:
        os.kill(one.pid, signal.SIGKILL)
    assert left == []


@LINUX
def test_a_service_that_is_killed_is_started_again_and_what_it_left_is_ended() -> None:
    standing = up(stack(a=command("1", restart=True)))
    _, keeper, service, child = everybody(standing)
    os.kill(service.pid, signal.SIGKILL)

    def again() -> bool:
        state = read_state(standing.folder)
        return state is not None and state.units[0].restarts == 1 and state.units[0].phase is Phase.READY

    until(again)
    assert not any(one.is_alive for one in (keeper, service, child))


def test_where_each_service_is_can_be_read_from_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    standing = up(stack(a=command(), **{"a-name-that-is-rather-long": command()}))
    assert exit_code_of(["ps"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"s: {standing.blueprint.door}/v1 · m"
    assert [line.split()[-1] for line in lines[2:]] == [
        process.base_url.removeprefix("http://") for process in standing.blueprint.processes
    ]


def test_a_mistake_in_the_gateways_configuration_is_the_users() -> None:
    told = {"engines": {"a": command()}, "gateway": {"config": {"pollicy": "random"}}}
    with pytest.raises(UsageError, match=r"^The stack is wrong: .*pollicy.* - at `\$\.gateway\.config`"):
        up(stack_of(told, "s"))
    assert standings() == []


def test_a_mistake_in_the_agents_configuration_is_the_users() -> None:
    told = {"engines": {"a": command()}, "agent": {"config": {"limmits": {}}}}
    with pytest.raises(UsageError, match=r"^The stack is wrong: .*limmits.* - at `\$\.agent\.config`"):
        up(stack_of(told, "s"))


def test_a_stack_that_is_not_there_is_called_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["up", "nofile.toml"]) == 2
    assert "withstand: The stack nofile.toml cannot be read" in capsys.readouterr().err


def test_one_that_does_not_come_up_is_named_and_none_is_left() -> None:
    broken = {"kind": "command", "args": ["sh", "-c", "echo no such model >&2; exit 7"], "served_as": "m"}
    with pytest.raises(EngineError, match=r"b ended \(exit code 7\): no such model"):
        up(stack(a=command(), b=broken))
    standing = standing_of("s")
    assert standing
    assert not standing.is_up
    assert not any(unit.leader and unit.leader.is_alive for unit in standing.state.units)
    assert up(stack()).is_up  # what was left there is no obstacle


def test_what_a_service_makes_elsewhere_goes_also_where_the_stack_does_not_come_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"

    def planned_with_scratch(*told: Any) -> Blueprint:
        blueprint = planned(*told)
        return replace(blueprint, processes=tuple(replace(p, scratch=(str(elsewhere),)) for p in blueprint.processes))

    monkeypatch.setattr("withstand.stack.local.planned", planned_with_scratch)
    with pytest.raises(EngineError):
        up(stack(a={"kind": "command", "args": ["sh", "-c", f"mkdir {elsewhere}; exit 7"], "served_as": "m"}))
    assert not elsewhere.exists()


def test_a_supervisor_that_fails_by_itself_is_not_called_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned_with_a_bad_pattern(*told: Any) -> Blueprint:
        blueprint = planned(*told)
        return replace(blueprint, processes=tuple(replace(p, reason="(") for p in blueprint.processes))

    monkeypatch.setattr("withstand.stack.local.planned", planned_with_a_bad_pattern)
    with pytest.raises(EngineError, match=r"its supervisor has failed: .*unterminated subpattern"):
        up(stack(a={"kind": "command", "args": ["sh", "-c", "exit 7"], "served_as": "m"}))


def test_one_that_is_not_ready_in_time_is_named() -> None:
    with pytest.raises(EngineError, match=r"a was not ready within 0\.3 s"):
        up(stack(a=command("0", "600", ready_s=0.3)))


def test_one_that_answers_but_not_with_200_is_told_with_what_it_answers() -> None:
    serves = "h.HTTPServer(('127.0.0.1', int(sys.argv[1])), h.BaseHTTPRequestHandler).serve_forever()"
    script = f"import sys, http.server as h; {serves}"
    never = {"kind": "command", "args": [sys.executable, "-c", script, "{port}"], "served_as": "m", "health": "/h"}
    with pytest.raises(EngineError, match=r"a was not ready within 5 s \(it answers 501 at /h\)"):
        up(stack(a=never | {"ready_s": 5}))


def test_one_that_takes_a_second_to_answer_comes_up() -> None:
    assert up(stack(a=command("0", "0", "1.2", ready_s=60))).is_up


def test_one_that_has_too_little_room_is_told_of_it() -> None:
    with pytest.raises(EngineError, match=r"perhaps its room\.memory_gb = 0\.001 is too little\."):
        up(stack(a=command(room={"memory_gb": 0.001})))


def test_a_command_that_is_not_there_is_named() -> None:
    nowhere = {"kind": "command", "args": ["/no/such/server"], "served_as": "m"}
    with pytest.raises(EngineError, match=r"^a: there is no program /no/such/server\. Install it, or correct its path"):
        up(stack(a=nowhere))


def test_two_stacks_stand_side_by_side_and_one_name_only_once() -> None:
    one, other = up(stack("one")), up(stack("other"))
    assert {process.port for process in one.blueprint.processes}.isdisjoint(
        process.port for process in other.blueprint.processes
    )
    with pytest.raises(UsageError, match="up already"):
        up(stack("one"))
    take_down(one)
    assert [each.name for each in standings() if each.is_up] == ["other"]


def test_a_stacks_file_stands_for_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    up(stack("my-own"))
    up(stack("other"))
    named, unnamed = tmp_path / "any.toml", tmp_path / "Other.toml"
    named.write_text('name = "my-own"\n[of-no-use-by-now]\n')
    unnamed.write_text("")
    assert exit_code_of(["ps", str(named)]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines() if "/v1 · " in line] == ["my-own"]
    assert exit_code_of(["logs", str(named), "a"]) == 0
    assert exit_code_of(["down", str(tmp_path / "no.toml")]) == 2
    assert "no.toml cannot be read" in capsys.readouterr().err
    assert exit_code_of(["down", str(unnamed)]) == 0
    assert [each.name for each in standings()] == ["my-own"]


@pytest.mark.skipif(importlib.util.find_spec("fastapi") is None, reason="the gateway's extra is not installed")
def test_an_engine_that_the_gateway_starts_has_a_log_too(capsys: pytest.CaptureFixture[str]) -> None:
    rests = command(deploy={"min_replicas": 0})
    standing = up(stack_of({"engines": {"a": rests}, "gateway": {}}, "s"))
    assert exit_code_of(["logs", "s", "a"]) == 0
    assert "a says nothing yet: the gateway starts it when somebody asks for it." in capsys.readouterr().err

    def shown(argv: list[str]) -> list[str]:
        assert exit_code_of(argv) == 0
        return capsys.readouterr().out.splitlines()

    def row() -> list[str]:
        return next(line.split() for line in shown(["ps"]) if line.startswith("a "))

    assert row()[:4] == ["a", "command", "at", "rest"]
    asked = urllib.request.Request(f"{standing.blueprint.door}/v1/chat/completions", b'{"model": "m", "messages": []}')
    with contextlib.suppress(OSError):  # it is woken, whatever it says
        urllib.request.urlopen(asked, timeout=60)
    assert row()[2] == "awake"
    assert re.match(r"\[withstand [^]]*\] a starts, for somebody asks for it$", shown(["logs", "s", "a"])[0])
    assert any(re.match(r"a       \| .*\] a starts", line) for line in shown(["logs", "s"]))


def test_who_may_name_no_stack_may_take_all(capsys: pytest.CaptureFixture[str]) -> None:
    up(stack("one"))
    up(stack("other"))
    assert exit_code_of(["logs"]) == exit_code_of(["down"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "withstand: Name a stack: there are one, other.",
        "withstand: Name a stack, or take --all: there are one, other.",
    ]


@LINUX
def test_a_taken_port_is_refused_with_its_owners_name() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        me = identity_of(os.getpid())
        assert me
        with pytest.raises(
            EngineError, match=rf"Port \d+ of 127\.0\.0\.1, which a wants, is taken by .+ \(pid {me.pid}\)"
        ):
            up(stack(a=command(port=taken.getsockname()[1])))


def test_a_secret_reaches_the_service_and_no_file(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2-hunter2")
    show = f"test ${{#KEY}} = 15 || exit 9; exec {sys.executable} {SERVER} {{port}}"
    env = {"KEY": {"from_env": "TOKEN"}}
    standing = up(stack(a={"kind": "command", "args": ["sh", "-c", show], "served_as": "m", "env": env}))
    assert standing.is_up
    for path in state.rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes()
    monkeypatch.delenv("TOKEN")
    take_down(standing)
    with pytest.raises(UsageError, match="variable TOKEN"):
        up(stack(a=command(env=env)))


@LINUX
def test_a_service_runs_where_and_with_what_it_may() -> None:
    standing = up(stack(a=command(room={"cpus": [0], "memory_gb": 1})))
    service = everybody(standing)[2]
    assert os.sched_getaffinity(service.pid) == {0}
    limits = Path(f"/proc/{service.pid}/limits").read_text()
    assert any(line.startswith("Max data size") and "1000000000" in line for line in limits.splitlines())


LITTERS = f"""
import runpy, sys, tempfile
for _ in range(3):
    print(tempfile.mkdtemp(prefix="litter-"), flush=True)
sys.argv = sys.argv[:1] + sys.argv[1:2]
runpy.run_path({SERVER!r}, run_name="__main__")
"""


@pytest.mark.parametrize("killed", [False, True], ids=["down", "supervisor killed"])
def test_what_services_leave_in_their_temporary_folder_goes_with_the_stack(*, killed: bool) -> None:
    litters = {"kind": "command", "args": [sys.executable, "-c", LITTERS, "{port}"], "served_as": "m"}
    standing = up(stack(a=litters))
    said = (standing.folder / "logs" / "a.log").read_text().split()
    litter = [Path(word) for word in said if "litter-" in word]
    scratch = Path(standing.state.scratch or "")
    assert len(litter) == 3
    assert all(path.is_dir() and path.parent == scratch for path in litter)
    if killed:
        os.kill(standing.state.supervisor.pid, signal.SIGKILL)
        until(lambda: not standing.state.supervisor.is_alive)
    assert not take_down(standing)
    assert not scratch.exists()


def test_what_a_killed_service_has_left_elsewhere_is_taken_away_or_the_folder_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    standing = up(stack(a=command(env={"WORD": "aloud"})))
    said, willing = tmp_path / "said", tmp_path / "willing"
    code = f"import os, pathlib, sys; pathlib.Path({str(said)!r}).write_text(os.environ['WORD'])\n"
    code += f"pathlib.Path({str(willing)!r}).exists() or sys.exit('error: not yet')"
    [process] = standing.blueprint.processes
    undo = Undo(argv=(sys.executable, "-c", code), trace="there")
    standing = replace(standing, blueprint=replace(standing.blueprint, processes=(replace(process, undo=undo),)))
    (standing.folder / "there").touch()
    with pytest.raises(EngineError, match=r"What a has left elsewhere is not taken away.*: error: not yet"):
        take_down(standing)
    assert said.read_text() == "aloud"
    said.unlink()
    os.mkfifo(said)  # nobody reads, so who writes waits
    monkeypatch.setattr(taking_down, "_UNDO_S", 0.5 - process.upkeep.stop_s)
    with pytest.raises(EngineError, match=r"not taken away within 0\.5 s; try it again"):
        take_down(standing)
    monkeypatch.setattr(taking_down, "_UNDO_S", 60.0)
    said.unlink()
    willing.touch()
    assert take_down(standing) == []
    assert not standing.folder.exists()


@LINUX
def test_a_number_that_is_anothers_by_now_is_left_alone() -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        now = identity_of(stranger.pid)
        assert now
        was = Identity(now.pid, str(int(now.started) - 1))
        try:
            assert in_session(now) == [now]
            assert in_session(was) == []
            assert was.memory_bytes == 0
        finally:
            stranger.kill()


@LINUX
def test_after_the_machines_own_end_nothing_is_left_to_be_ended() -> None:
    standing = up(stack(a=command()))
    state = standing.state
    assert state.boot
    assert _leftovers(standing, state)
    assert _leftovers(standing, replace(state, boot="another")) == []


def test_what_cannot_be_read_of_an_earlier_stack_is_not_removed(state: Path) -> None:
    folder = state / "stacks" / "s"
    folder.mkdir(parents=True)
    for text in ("[" * 200_000, "{}"):
        (folder / "state.json").write_text(text)
        with pytest.raises(EngineError, match="cannot be read"):
            up(stack())
        for argv in (["ps"], ["ps", "s"], ["down", "s"], ["down", "--all"]):
            assert exit_code_of(argv) == EngineError.exit_code
    assert (folder / "state.json").exists()


@LINUX
def test_what_no_program_can_be_given_is_said_of_the_service() -> None:
    with pytest.raises(EngineError, match=r"a cannot be started: .*(null|NUL)"):
        up(stack(a=command(env={"A": "x\0y"})))


def test_a_supervisor_that_is_never_heard_of_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="does not start"):
        announced(tmp_path, 0.1)


def test_a_stack_that_is_up_for_one_run_is_not_lent_to_another() -> None:
    with held(stack(a=command())) as standing:
        with (
            pytest.raises(UsageError, match=f"up for another run alone .process {os.getpid()}."),
            held(stack(a=command())),
        ):
            pass
        assert standing.is_up
    assert standing_of("s") is None


def test_a_stack_that_comes_up_is_waited_for_and_stays() -> None:
    told = stack(a=command("0", "1.5"))
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(up, told)
        until(lambda: standing_of("s"))
        with held(told) as standing:
            assert {unit.phase for unit in standing.state.units} == {Phase.READY}
        assert coming.result().is_up
    assert standing_of("s")


def test_who_waits_for_another_that_is_prepared_says_so(state: Path) -> None:
    folder = state / "stacks"
    folder.mkdir(parents=True)
    lock, said = os.open(folder, os.O_RDONLY), list[str]()
    fcntl.flock(lock, fcntl.LOCK_EX)
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(bring_up, stack(a=command()), lambda step, *_: said.append(step), lambda _: None)
        until(lambda: said)
        os.close(lock)
        assert coming.result().is_up
    assert set(said) == {"Waiting for another stack that is being prepared"}
