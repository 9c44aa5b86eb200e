"""Which stack a verb means: by its name, as the only one that is up, and by one of its services."""

from pathlib import Path

import pytest

from stacks import command, stack, up
from withstand.cli.entry import exit_code_of
from withstand.errors import EngineError
from withstand.stack.standing import standings

pytestmark = pytest.mark.usefixtures("state")


def failed(name: str) -> None:
    """One that has not come up, of which only the logs are left."""
    ends = {"kind": "command", "args": ["sh", "-c", "exit 3"], "served_as": "m"}
    with pytest.raises(EngineError):
        up(stack(name, a=ends))
    assert [each.is_up for each in standings() if each.name == name] == [False]


@pytest.mark.parametrize("verb", [["ps"], ["ps", "--json"], ["logs"], ["restart"], ["down"]])
def test_a_stack_that_is_not_there_is_an_error(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [*verb, "egde", *(["a"] if verb == ["restart"] else [])]
    up(stack("edge", a=command()))
    if verb != ["restart"]:  # which takes it for a service
        assert exit_code_of(named) == 2
        many = ("and no service ", ", and the services a") if verb == ["logs"] else ("", "")
        said = "withstand: There is no stack {}'egde' (did you mean edge?); there is edge{}.\n".format(*many)
        assert capsys.readouterr() == ("", said)
    file = tmp_path / "egde.toml"
    file.write_text("")
    if verb != ["down"]:  # as it is wanted
        assert exit_code_of([*verb, str(file), *named[len(verb) + 1 :]]) == 2
        said = "withstand: There is no stack 'egde' (did you mean edge?); there is edge.\n"
        assert capsys.readouterr() == ("", said)


def test_none_is_up_is_no_error_where_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["ps"]) == 0
    assert capsys.readouterr().out == "No stack is up.\n"
    assert exit_code_of(["ps", ""]) == exit_code_of(["ps", "edge"]) == 2
    said = ["withstand: There is no stack ''; none is up.", "withstand: There is no stack 'edge'; none is up."]
    assert capsys.readouterr().err.splitlines() == said


def test_the_only_stack_that_is_up_is_meant_whatever_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    failed("b17")
    up(stack("edge", a=command()))
    failed("c18")
    assert exit_code_of(["restart", "a", "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("edge: ")
    assert exit_code_of(["logs"]) == 0
    assert exit_code_of(["down"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "edge is down."
    assert exit_code_of(["down"]) == 2
    assert "Name a stack, or take --all: there are b17, c18." in capsys.readouterr().err
    assert exit_code_of(["down", "c18"]) == 0
    assert exit_code_of(["logs"]) == exit_code_of(["down"]) == 0


def test_logs_of_a_service_of_the_only_stack_that_is_up(capsys: pytest.CaptureFixture[str]) -> None:
    failed("b17")
    up(stack("edge", gate=command(), b=command()))
    capsys.readouterr()
    assert exit_code_of(["logs", "gate"]) == exit_code_of(["logs", "edge", "gate"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
    assert not any(" | " in line for line in lines)
    assert exit_code_of(["logs", "gaet"]) == exit_code_of(["logs", "edge", "gaet"]) == exit_code_of(["restart", "gaet"])
    alone, *named = capsys.readouterr().err.splitlines()
    there = "(did you mean gate?); there are b17, edge, and the services gate, b."
    assert alone == f"withstand: There is no stack and no service 'gaet' {there}"
    assert set(named) == {"withstand: The stack 'edge' has no service 'gaet' (did you mean gate?); it has gate, b."}
    up(stack("gate", a=command()))
    assert exit_code_of(["logs", "gate"]) == 0, "a stack's name goes before a service's"
    assert all(line.startswith("a | ") for line in capsys.readouterr().out.splitlines())
    assert exit_code_of(["logs", "b"]) == 2
    assert "There is no stack 'b'; there are b17, edge, gate." in capsys.readouterr().err
