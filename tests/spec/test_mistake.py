"""What is wrong in a stack is said in one form: what, at which key, in which file."""

import re
from pathlib import Path
from typing import Any

import pytest

from withstand.cli.entry import exit_code_of
from withstand.errors import SpecError
from withstand.spec.stack import stack_from_file, stack_of

A = {"kind": "llamacpp"}


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"engines": {"a": A, "b": {**A, "max_sequence": 4}}}, "(did you mean max_sequences?) - at `$.engines.b`"),
        ({"engines": {"a": A, "b": {**A, "port": 0}}}, "`$.engines.b.port`"),
        ({"engines": {"a": A, "b": {**A, "env": {"X": "1", "Y": 2}}}}, "`$.engines.b.env.Y`"),
        ({"engines": {"a": {**A, "port": 0}, "b": {**A, "port": 0}}}, "`$.engines.a.port`"),
        ({"engines": {"a": A, "b": 3}}, "`$.engines.b`"),
        ({"engines": {"a": A, "x.y": {**A, "port": 0}}}, "`$.engines.x.y.port`"),
        ({"engines": {"a": A, "x.y": {**A, "env": {"X": 2}}}}, "`$.engines.x.y.env.X`"),
        ({"engines": {"a": A}, "gateway": {"env": {"X": 2}}}, "`$.gateway.env.X`"),
        ({"engines": {"a": A}, "gateway": {"copies": 0}}, "`$.gateway.copies`"),
        ({"engines": {"a": {**A, "api_key": {}}}}, "give either from_env or from_file - at `$.engines.a.api_key`"),
    ],
)
def test_the_key_is_named_though_it_stands_in_a_table_of_names(tree: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as raised:
        stack_of(tree, "s")
    assert str(raised.value).startswith("The stack is wrong: ")
    assert said in str(raised.value)


TAKEN = "engines.a.port has 9001 already; give it another one, or none to get a free one"


def test_two_services_on_one_port_are_refused() -> None:
    a, remote = A | {"port": 9001}, {"kind": "remote", "port": 9001}
    for more, at in (
        ({"gateway": {"port": 9001}}, "gateway.port"),
        ({"edge": {"port": 9001}}, "edge.port"),
        ({"engines": {"a": a, "b": a}}, "engines.b.port"),
    ):
        with pytest.raises(SpecError, match=re.escape(f"{TAKEN} - at `$.{at}`")):
            stack_of({"engines": {"a": a}} | more, "s")
    stack_of({"engines": {"a": a, "b": remote}, "gateway": {"port": 9002}}, "s")
    stack_of({"engines": {"a": a}, "runner": "ray", "gateway": {"port": 9001}}, "s")
    with pytest.raises(SpecError, match=r"ray\.port has 9001 already"):
        stack_of({"engines": {"a": A}, "runner": "ray", "ray": {"port": 9001}, "gateway": {"port": 9001}}, "s")


LLAMA = '[engines.a]\nkind = "llamacpp"\n'
REMOTE = '[engines.a]\nkind = "remote"\nurl = "http://x"\nserved_as = "m"'
UNKNOWN = '[engines.small]\nkind = "lamacpp"'
NO_KIND = "there is no kind 'lamacpp' (did you mean llamacpp or ollama?) - at `$.engines.small.kind`."


@pytest.mark.parametrize(
    ("text", "argv", "said"),
    [
        (UNKNOWN, ["up"], NO_KIND),
        (UNKNOWN, ["export", "--to", "compose"], NO_KIND),
        (f'{LLAMA}port = "x"', ["up"], "Expected a whole number, such as 8, and not a text - at `$.engines.a.port`"),
        (f'{LLAMA}dtype = "x"', ["run"], "llamacpp cannot do that; leave it out - at `$.engines.a.dtype`."),
        (f"{LLAMA}max_sequence = 2", ["ab"], "`$.engines.a`"),
        (f"{LLAMA}deploy.min_replicas = 0", ["export", "--to", "kubernetes"], "`$.engines.a.deploy.min_replicas`."),
        (REMOTE, ["export", "--to", "modal"], "all engines are remote - at `$.engines`."),
    ],
)
def test_verbs_name_the_file_too(
    text: str, argv: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "chat.toml"
    file.write_text(text)
    assert exit_code_of([argv[0], str(file), *argv[1:]]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert f"The stack {file} {f'cannot be exported to {argv[-1]}' if argv[0] == 'export' else 'is wrong'}: " in told


def test_a_gateways_file_is_told_from_a_stacks(tmp_path: Path) -> None:
    path = tmp_path / "g.toml"
    path.write_text('listen = "127.0.0.1:1"\n[models.m]\n')
    with pytest.raises(SpecError, match=r"g\.toml is a gateway's file, not a stack's: withstand gateway "):
        stack_from_file(path)
