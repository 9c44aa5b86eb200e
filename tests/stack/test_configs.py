"""What configurations of gateway and agent name of a machine: known in full, and belonging to the stack's file."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from withstand.agent.config import Config as AgentConfig
from withstand.cli.entry import exit_code_of
from withstand.gateway.config import Config as GatewayConfig
from withstand.spec.stack import stack_of
from withstand.stack.configs import READ, VARIABLES, WRITTEN, changed, found
from withstand.stack.settled import settled, with_programs

SEATS = "models.*.engines.*"
OF_NO_MACHINE = {
    "gateway": {
        *(
            "listen",
            "models.*.aliases.*",
            "models.*.session_by.*",
            "cors.origins.*",
            "keys.*.models.*",
            "keys.*.sha256",
        ),
        *("models.*.poll.path", "models.*.health.path", "telemetry.otlp", "telemetry.service"),
        *(f"{SEATS}.{field}" for field in ("url", "model", "ready", "poll.path", "health.path", "command.*", "env.*")),
    },
    "agent": {
        *("listen", "name", "instructions", "model.base_url", "model.name"),
        *("search.kind", "search.url", "http.allow.*"),
    },
}
"""Texts that are no path and no variable of the process itself."""


def texts(told: inspect.Type, at: str = "") -> Iterator[str]:
    """Where a configuration may have any text."""
    if isinstance(told, inspect.StrType):
        yield at
    for each in told.types if isinstance(told, inspect.UnionType) else ():
        yield from texts(each, at)
    for field in told.fields if isinstance(told, inspect.StructType) else ():
        yield from texts(field.type, f"{at}.{field.encode_name}".strip("."))
    if isinstance(told, inspect.DictType):
        yield from texts(told.value_type, f"{at}.*")
    if isinstance(told, inspect.VarTupleType):
        yield from texts(told.item_type, f"{at}.*")


@pytest.mark.parametrize(("kind", "config"), [("gateway", GatewayConfig), ("agent", AgentConfig)])
def test_each_text_of_a_configuration_is_known(kind: str, config: type) -> None:
    """A new field is put where it belongs, else an export would leave it out and say nothing."""
    known = {*READ[kind], *WRITTEN[kind], *VARIABLES[kind]}
    assert not known & OF_NO_MACHINE[kind]
    assert set(texts(inspect.type_info(config))) == known | OF_NO_MACHINE[kind]


def test_what_has_another_shape_is_passed_by() -> None:
    for tree in (None, 5, "x", [], {"keys": 5}, {"keys": {"a": [1]}}, {"models": {"m.1": {"engines": [{"log": 3}]}}}):
        for field in (*READ["gateway"], *WRITTEN["gateway"], *VARIABLES["gateway"]):
            assert list(found(tree, field)) == []
            assert changed(tree, field, str.upper) == tree
    tree = {"models": {"m.1": {"engines": [{"log": "l"}]}}}
    assert list(found(tree, f"{SEATS}.log")) == [("models.m.1.engines[0].log", "l")]
    assert changed(tree, f"{SEATS}.log", str.upper) == {"models": {"m.1": {"engines": [{"log": "L"}]}}}


def test_paths_of_configurations_belong_to_the_folder_of_the_stacks_file(tmp_path: Path) -> None:
    gateway: dict[str, Any] = {
        "keys_file": "keys.toml",
        "state": "g.sqlite3",
        "log": {"path": "logs/a.jsonl"},
        "models": {"m": {"engines": [{"url": "http://x", "cwd": "w", "log": "/l", "api_key_file": "k"}]}},
    }
    agent = {"search": {"path": "kb"}, "files": {"allow": ["kb", "/a"]}, "sessions": {"path": "s.db"}}
    tree = {"engines": {"a": {"kind": "sim"}}, "gateway": {"config": gateway}, "agent": {"config": agent}}
    told = settled(stack_of(tree, "s"), tmp_path)
    assert told.gateway
    assert told.agent
    here = str(tmp_path)
    assert told.gateway.config == {
        "keys_file": f"{here}/keys.toml",
        "state": f"{here}/g.sqlite3",
        "log": {"path": f"{here}/logs/a.jsonl"},
        "models": {
            "m": {"engines": [{"url": "http://x", "cwd": f"{here}/w", "log": "/l", "api_key_file": f"{here}/k"}]}
        },
    }
    assert told.agent.config == {
        "search": {"path": f"{here}/kb"},
        "files": {"allow": [f"{here}/kb", "/a"]},
        "sessions": {"path": f"{here}/s.db"},
    }
    elsewhere = {"state": "redis://r", "log": {"path": "-"}}
    tree = {"engines": {"a": {"kind": "sim"}}, "gateway": {"config": elsewhere}}
    told = settled(stack_of(tree, "s"), tmp_path)
    assert told.gateway
    assert told.gateway.config == elsewhere


def test_programs_and_the_plans_files_are_looked_for_beside_the_stacks_file(tmp_path: Path) -> None:
    for name in ("venv/bin/python", "bin/server", "rows.jsonl", "ca.pem", "tokenizer.json", "engine"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    engines = {
        "a": {"kind": "vllm", "python": "venv/bin/python", "model": "org/m"},
        "b": {"kind": "command", "args": ["./bin/server", "./bin/server"], "served_as": "m"},
        "c": {"kind": "llamacpp", "binary": "llama-server"},
    }
    plan = {
        "target": {"cacert": "ca.pem"},
        "workload": {"path": ["rows.jsonl", "others.jsonl"], "tokenizer": "tokenizer.json"},
    }
    told = with_programs(settled(stack_of({"engines": engines, "plan": plan}, "s"), tmp_path), tmp_path)
    assert told.engines["a"].python == f"{tmp_path}/venv/bin/python"
    assert told.engines["b"].args == (f"{tmp_path}/bin/server", "./bin/server")
    assert told.engines["c"].binary == "llama-server"
    assert told.plan == {
        "target": {"cacert": f"{tmp_path}/ca.pem"},
        "workload": {"path": [f"{tmp_path}/rows.jsonl", "others.jsonl"], "tokenizer": f"{tmp_path}/tokenizer.json"},
    }
    named = stack_of({"engines": engines, "plan": {"workload": {"tokenizer": "engine"}}}, "s")
    assert settled(named, tmp_path).plan == named.plan


def test_a_file_of_keys_beside_the_stacks_file_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name of a temporary folder that nobody has written stood in the error."""
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(os.sep)
    stack = tmp_path / "s.json"
    stack.write_bytes(
        msgspec.json.encode({"engines": {"a": {"kind": "sim"}}, "gateway": {"config": {"keys_file": "keys.toml"}}})
    )
    assert exit_code_of(["up", "--check", str(stack)]) == 2
    assert f"The keys_file {tmp_path / 'keys.toml'} cannot be read" in capsys.readouterr().err
    (tmp_path / "keys.toml").write_text('[keys.alice]\nsha256 = "no"\n')
    assert exit_code_of(["up", "--check", str(stack)]) == 2
    assert "`withstand gateway keys hash` makes one" in capsys.readouterr().err
