"""The port of an engine that rests is its stack's, though nobody listens there; a stranger who does wakes nobody."""

import json
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from stacks import command, stack, up
from withstand.cli.entry import exit_code_of
from withstand.errors import EngineError
from withstand.spec.stack import stack_of
from withstand.stack.local import planned
from withstand.stack.ports import HOST, free_port
from withstand.stack.standing import Standing, claimed_ports

pytestmark = [
    pytest.mark.usefixtures("state"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who listens"),
]


_ROLES = ("prefill", "decode")


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def resting(state: Path, port: int) -> Standing:
    assert state
    engine = command(port=port, stop_s=1, deploy={"min_replicas": 0, "idle_s": 600})
    return up(stack_of({"name": "s", "engines": {"a": engine}, "gateway": {}}, "s"))


def told_by_ps(capsys: pytest.CaptureFixture[str]) -> bool:
    capsys.readouterr()
    assert exit_code_of(["ps", "s", "--json"]) == 0
    [told] = json.loads(capsys.readouterr().out)
    [engine] = told["left_to_gateway"]
    return bool(engine["at_rest"])


@pytest.mark.usefixtures("resting")
def test_no_other_stack_may_have_it(port: int) -> None:
    with pytest.raises(EngineError, match=rf"Port {port} of .*, which b wants, is of the stack 's'"):
        up(stack("other", b=command(port=port)))


def test_who_else_listens_there_does_not_make_it_awake(
    port: int, resting: Standing, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server((HOST, port)):
        assert told_by_ps(capsys)
    assert told_by_ps(capsys)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "a"}]}).encode()
    ask = urllib.request.Request(f"{resting.blueprint.door}/v1/chat/completions", body, {"content-type": "a/json"})
    try:
        urllib.request.urlopen(ask, timeout=60).close()
    except urllib.error.HTTPError as e:
        e.close()  # the server knows GET alone
    assert not told_by_ps(capsys)


def test_ports_besides_those_of_services_are_claimed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("withstand.stack.local.check_programs", bool)
    roles = {role: {"kind": "vllm", "model": "m", "python": sys.executable, "role": role} for role in _ROLES}
    blueprint = planned(stack_of({"name": "s", "engines": roles, "gateway": {}}, "s"))
    assert len(set(blueprint.ports)) == len(blueprint.processes) + len(_ROLES)
    assert set(up(stack(a=command())).blueprint.ports) == set(claimed_ports())
