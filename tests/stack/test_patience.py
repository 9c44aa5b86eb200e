"""Who waits for a stack does so no longer than its services may take, though its supervisor is held up."""

import os
import signal

import pytest

from hosted import until
from stacks import command, held, stack
from withstand.cli.stacks import StackTold
from withstand.errors import EngineError
from withstand.processes.identity import Identity
from withstand.stack.blueprint import Blueprint, Process, Upkeep
from withstand.stack.local import bring_up
from withstand.stack.patience import why_too_long
from withstand.stack.state import StackState, UnitState
from withstand.stack.supervision import Phase
from withstand.stack.taking_down import take_down


@pytest.mark.usefixtures("state")
def test_a_supervisor_that_is_stopped_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("withstand.stack.patience._LATE_S", -2.0)
    monkeypatch.setattr("withstand.stack.taking_down._MORE_S", 0.0)
    told, seen = stack(a=command("0", "600", ready_s=0.5, stop_s=0)), list[StackState]()

    def stop_it(state: StackState) -> None:
        if state.units[0].leader and not seen:
            seen.append(state)
            os.kill(state.supervisor.pid, signal.SIGSTOP)
            with pytest.raises(EngineError, match="a is not ready within 2 s: it is starting"), held(told):
                pass

    with pytest.raises(EngineError) as e:
        bring_up(told, lambda *_: None, stop_it)
    supervisor = seen[0].supervisor
    assert f"its supervisor, process {supervisor.pid}, tells nothing new, and a is not ready within 2 s" in str(e.value)
    until(
        lambda: not any(one and one.is_alive for one in (supervisor, seen[0].units[0].leader)), "something of it lives"
    )


@pytest.mark.usefixtures("state")
def test_a_supervisor_that_is_stopped_is_told_of_and_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("withstand.stack.local._TELL_S", 0.1)
    told, supervisors, said = StackTold(quiet=False), list[int](), ""

    def stop_it(state: StackState) -> None:
        nonlocal said
        told.hear(state)
        said += capsys.readouterr().err
        if state.units[0].leader and not supervisors:
            supervisors.append(state.supervisor.pid)
            os.kill(state.supervisor.pid, signal.SIGSTOP)
        elif "is stopped" in said:
            os.kill(state.supervisor.pid, signal.SIGCONT)

    standing = bring_up(stack(a=command("0", stop_s=0)), lambda *_: None, stop_it)
    assert f"supervisor, process {supervisors[0]}, is stopped and does not answer; kill -CONT" in said
    assert said.count("is stopped") == 1
    assert take_down(standing) == []


@pytest.mark.parametrize(
    ("phase", "waited_s", "why"),
    [
        (Phase.READY, 1e6, None),
        (Phase.STARTING, 9.9, None),
        (Phase.STARTING, 10.1, "a is not ready within 10 s: it is starting"),
        (Phase.BACKING_OFF, 69.9, None),
        (Phase.BACKING_OFF, 70.1, "a is not ready within 70 s: it is backing off"),
    ],
)
def test_what_a_service_may_take_it_is_given(phase: Phase, waited_s: float, why: str | None) -> None:
    told = stack(a=command())
    a = Process(name="a", kind="command", argv=("a",), port=1, upkeep=Upkeep(ready_s=1, stop_s=1))
    blueprint = Blueprint(made_of=told, processes=(a,), door="", model="m")
    unit = UnitState(name="a", phase=phase, since_s=0)
    state = StackState(supervisor=Identity(1, "1"), mark="", began_s=0, units=(unit,))
    assert why_too_long(blueprint, state, unit, waited_s) == why
