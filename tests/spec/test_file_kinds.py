"""A file of another kind than a verb takes is told by its kind, and with the verb that takes it."""

from pathlib import Path

import pytest

from withstand.cli.entry import exit_code_of
from withstand.errors import SpecError
from withstand.spec.file_kinds import kind_of, refuse_others

STACK, GATEWAY, AGENT = (
    '[engines.a]\nkind = "sim"\n',
    '[[models.m.engines]]\nurl = "http://127.0.0.1:1"\n',
    '[model]\nbase_url = "http://127.0.0.1:1"\nname = "m"\n',
)


def test_each_is_known_by_a_key_of_its_own() -> None:
    assert kind_of({"engines": {}}) == "stack"
    assert kind_of({"models": {}}) == "gateway"
    assert kind_of({"model": {}}) == "agent"
    assert kind_of({"target": {"model": "m"}}) is None
    with pytest.raises(SpecError, match=r"^a\.toml is an agent's file, not a plan: withstand agent a\.toml\.$"):
        refuse_others(Path("a.toml"), {"model": {}}, "a plan", "stack")


@pytest.mark.parametrize(
    ("argv", "text", "said"),
    [
        (
            ["run", "f.toml"],
            GATEWAY,
            "f.toml is a gateway's file, not a plan's or a stack's: withstand gateway f.toml.",
        ),
        (["run", "f.toml"], AGENT, "withstand agent f.toml"),
        (["run", "--plan", "f.toml"], STACK, "f.toml is a stack's file, not a plan: withstand up f.toml."),
        (["ab", "f.toml", "http://127.0.0.1:1"], GATEWAY, "f.toml is a gateway's file, not a plan"),
        (["ab", "f.toml"], GATEWAY, "f.toml is a gateway's file, not a stack's: withstand gateway f.toml."),
        (["ab", "f.toml", "f.toml"], STACK, "f.toml is a stack's file, and a side of ab is a URL or a plan."),
        (["up", "f.toml"], AGENT, "f.toml is an agent's file, not a stack's: withstand agent f.toml."),
        (["find-limit", "f.toml"], STACK, "f.toml is a stack's file, not a plan: withstand up f.toml."),
    ],
)
def test_verbs_say_whose_it_is(
    argv: list[str],
    text: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.toml").write_text(text)
    assert exit_code_of(argv) == 2
    assert said in " ".join(capsys.readouterr().err.split())
