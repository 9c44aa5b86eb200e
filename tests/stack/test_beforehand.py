"""What is wrong with a stack here is said before anything of it is started."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from withstand.cli.entry import exit_code_of
from withstand.errors import EngineError, SpecError, UsageError
from withstand.spec.stack import Secret, Tls, stack_of
from withstand.stack.beforehand import check_machine
from withstand.stack.exports.table import exported
from withstand.stack.local import planned
from withstand.stack.settled import settled, with_programs, with_variables_of_keys
from withstand.stack.standing import standings
from withstand.testing.certs import make_certificates

SIM, LLAMA = {"kind": "sim"}, {"kind": "llamacpp"}
CERTS = {"certificate": "/no/such.pem", "key": "/no/key.pem"}
NO_KEY = '[plan.target]\napi_key_env = "NO_SUCH_KEY"\n'
STACK = '[engines.a]\nkind = "sim"\n[gateway]\n'


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "state"))


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            {"engines": {"a": {"kind": "vllm", "model": "/no/m"}}},
            "there is no /no/m; correct it - at `$.engines.a.model`",
        ),
        (
            {"engines": {"a": {"kind": "vllm", "speculative": {"draft_model": "/no/d"}}}},
            "there is no /no/d; correct it - at `$.engines.a.speculative.draft_model`",
        ),
        (
            {"engines": {"a": {"kind": "vllm", "model": "./no/m"}}},
            "there is no ./no/m; correct it - at `$.engines.a.model`",
        ),
        (
            {"engines": {"a": LLAMA | {"model": "nope.gguf"}}},
            "there is no file nope.gguf; correct it - at `$.engines.a.model`",
        ),
        ({"engines": {"a": LLAMA | {"model": "/"}}}, "there is no file /; correct it - at `$.engines.a.model`"),
        (
            {"engines": {"a": LLAMA | {"model": "no.gguf", "deploy": {"min_replicas": 0}}}, "gateway": {}},
            "there is no file no.gguf; correct it - at `$.engines.a.model`",
        ),
        (
            {"engines": {"a": LLAMA | {"binary": "llama-server", "speculative": {"draft_model": "d.gguf"}}}},
            "there is no file d.gguf; correct it - at `$.engines.a.speculative.draft_model`",
        ),
        ({"engines": {"a": SIM | {"model": "no.toml"}}}, "there is no file no.toml; withstand fit writes one"),
        (
            {"engines": {"a": SIM}, "edge": {"tls": CERTS}},
            "there is no file /no/such.pem; correct it - at `$.edge.tls.certificate`",
        ),
        ({"engines": {"a": SIM}, "edge": {"tls": CERTS | {"certificate": "c.pem"}}}, "give its whole path"),
        ({"engines": {"a": SIM}, "gateway": {"config": {"listen": "127.0.0.1:1"}}}, "give `port` instead"),
        ({"engines": {"a": SIM}, "agent": {"config": {"listen": "127.0.0.1:1"}}}, "$.agent.config.listen"),
    ],
)
def test_a_file_that_is_not_here_is_named(tree: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        planned(stack_of(tree, "s"))


def test_certificates_and_keys_are_read_before_nginx_does(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    (tmp_path / "other").mkdir()
    good, other = make_certificates(tmp_path), make_certificates(tmp_path / "other")
    text = tmp_path / "text.pem"
    text.write_text("-----BEGIN")
    for certificate, key, said in (
        (text, good.key, f"{text} is no certificate (PEM): give another file - at `$.edge.tls.certificate`"),
        (good.certificate, text, f"{text} is no key (PEM) without a password: give another file - at `$.edge.tls.key`"),
        (good.certificate, other.key, f"{other.key} is not the key of {good.certificate}; give that one"),
    ):
        tls = {"certificate": str(certificate), "key": str(key)}
        with pytest.raises(SpecError, match=re.escape(said)):
            check_machine(stack_of({"engines": {"a": SIM}, "edge": {"tls": tls}}, "s"))
    tls = {"certificate": str(good.certificate), "key": str(good.key)}
    check_machine(stack_of({"engines": {"a": SIM}, "edge": {"tls": tls}}, "s"))


@pytest.mark.parametrize("text", ["garbage", "step_ms = -1", "step_ms = nan", "sequence_ms = inf"])
def test_a_model_that_is_none_is_not_simulated(text: str, tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises(SpecError, match=r"e\.toml.* - at `\$\.engines\.a\.model`"):
        check_machine(stack_of({"engines": {"a": SIM | {"model": str(tmp_path / "e.toml")}}}, "s"))


@pytest.mark.parametrize(
    "engine",
    [
        {"kind": "command", "args": ["/no/such/program"], "served_as": "m"},
        {"kind": "vllm", "python": "/no/such/python", "model": "org/m"},
    ],
)
def test_a_program_that_the_gateway_would_not_find_is_named(engine: dict[str, Any]) -> None:
    told = {"engines": {"a": engine | {"deploy": {"min_replicas": 0}}}, "gateway": {}}
    with pytest.raises(EngineError, match=r"^a: there is no program /no/such/p"):
        planned(stack_of(told, "s"))


@pytest.mark.skipif(importlib.util.find_spec("langgraph") is None, reason="the agent's extra is not installed")
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model": {"api_key_env": "NO_SUCH_KEY"}}, "agent: model.api_key_env: the variable NO_SUCH_KEY is not set"),
        ({"sessions": {"path": "/no/such/s.db"}}, "agent: sessions.path: /no/such/s.db cannot be made"),
    ],
)
def test_what_the_agent_would_refuse_is_said_before(config: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        planned(stack_of({"engines": {"a": SIM}, "agent": {"config": config}}, "s"))


def test_paths_of_a_file_belong_to_its_folder(tmp_path: Path) -> None:
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "m").touch()
    (tmp_path / "key").touch()
    engines = {
        "a": {"kind": "vllm", "model": "org/m", "env": {"K": {"from_file": "key"}, "V": "key"}},
        "b": {"kind": "vllm", "model": "meta/llama", "api_key": {"from_file": "/k"}},
        "c": {"kind": "command", "args": ["x"], "model": "org/m", "served_as": "m"},
    }
    tree = {"engines": engines, "edge": {"tls": {"certificate": "c.pem", "key": "/k.pem"}}}
    told = settled(stack_of(tree, "s"), tmp_path)
    assert [engine.model for engine in told.engines.values()] == [f"{tmp_path}/org/m", "meta/llama", "org/m"]
    assert told.engines["a"].env == {"K": Secret(from_file=f"{tmp_path}/key"), "V": "key"}
    assert told.engines["b"].api_key == Secret(from_file="/k")
    assert told.edge
    assert told.edge.tls == Tls(certificate=f"{tmp_path}/c.pem", key="/k.pem")


def test_names_that_others_understand_are_left_to_them() -> None:
    told = {"model": "/models/m", "served_as": "m"}
    engines = {"a": told | {"kind": "remote", "url": "http://there"}, "b": told | {"kind": "command", "args": ["x"]}}
    check_machine(stack_of({"engines": engines}, "s"))
    there = {"engines": {"a": {"kind": "vllm", "model": "/models/m"}}, "runner": "ray", "ray": {"address": "auto"}}
    check_machine(stack_of(there, "s"))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which cores there are")
def test_a_core_that_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 4})
    check_machine(stack_of({"engines": {"a": SIM | {"room": {"cpus": [0, 4]}}}}, "s"))
    with pytest.raises(
        SpecError, match=r"there is no core 3 here, but 0 to 1, 4; take some of those - at `\$\.gateway\.room\.cpus`"
    ):
        check_machine(stack_of({"engines": {"a": SIM}, "gateway": {"room": {"cpus": [1, 3, 7]}}}, "s"))


def test_an_engines_key_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_KEY", raising=False)
    remote = {"kind": "remote", "url": "http://there", "served_as": "m", "api_key": {"from_env": "NO_KEY"}}
    with pytest.raises(UsageError, match="variable NO_KEY"):
        check_machine(stack_of({"engines": {"a": remote}, "gateway": {}}, "s"))


@pytest.mark.parametrize("verb", [["up", "--check"], ["up"], ["run"]])
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            "[gateway.config]\npollicy = 1\n",
            "s.toml is wrong: Object contains unknown field `pollicy` - at `$.gateway.config`.",
        ),
        (
            '[gateway.config.models.zzz]\npolicy = "no"\n',
            "random, round_robin, session) - at `$.gateway.config.models.zzz.policy`.",
        ),
        (
            '[gateway.config.keys.a]\nsha256 = "no"\n',
            "`withstand gateway keys hash` makes one - at `$.gateway.config.keys.a.sha256`.",
        ),
        ("[plan]\nstagess = 1\n", "The plan in "),
        ('[plan.workload]\ndatset = "x"\n', "unknown field `datset` (did you mean dataset?) - at `$.workload`"),
        ('[plan.workload]\ndataset = "sharegtp"\n', "'sharegtp' is unknown (did you mean sharegpt?)"),
        ('[plan.target]\nservice = "edge"\n', "it has no service 'edge', but a, gateway - at `$.plan.target.service`"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_started(
    verb: list[str],
    more: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WITHSTAND_STATE", str(tmp_path / "state"))
    file = tmp_path / "s.toml"
    file.write_text(STACK + more)
    assert exit_code_of([*verb, str(file)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "starting" not in told
    assert standings() == []


@pytest.mark.parametrize("verb", [["up", "--check"], ["up"], ["run"]])
def test_a_gguf_file_is_looked_for_by_every_verb(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(STACK + '[engines.b]\nkind = "llamacpp"\nmodel = "no.gguf"\n')
    assert exit_code_of([*verb, str(file)]) == 2
    said = f"withstand: The stack {file} is wrong: there is no file no.gguf; correct it - at `$.engines.b.model`.\n"
    assert capsys.readouterr() == ("", said)
    assert standings() == []


@pytest.mark.parametrize(
    ("verb", "more", "said"),
    [
        ("check", '[plan.workload]\ndataset = "nope"\n', "'nope'"),
        (
            "check",
            "[plan.workload.options]\nkinds = 1\n",
            "is wrong: the dataset random has no option kinds; it has input_len, ",
        ),
        ("check", '[plan.workload]\ndataset = "sharegpt"\npath = "no.json"\n', "no.json cannot be read: No such file"),
        ("check", '[plan.workload]\ndataset = "agent"\nnum_prompts = 10000\n', "10,000 were asked for"),
        ("check", '[plan.workload]\ntokenizer = "no/tokenizer.json"\n', "--tokenizer"),
        ("check", NO_KEY, "the variable NO_SUCH_KEY is not set, or empty"),
        ("run", NO_KEY, "the variable NO_SUCH_KEY is not set, or empty"),
        ("ab", NO_KEY, "the variable NO_SUCH_KEY is not set, or empty"),
        ("check", '[plan.target]\ncacert = "no.pem"\n[plan.targets.c]\nbase_url = "https://x"\n', "no.pem"),
        ("check", '[plan]\nstages = [{ arrivals = { kind = "trace" } }]\n', "random has none"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said_before_anything_is_started(
    verb: str, more: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.toml"
    sides = '[plan.targets.a]\nservice = "x"\n'
    sides += '[plan.targets.b]\nservice = "x"\n' if "targets.c" not in more else ""
    file.write_text(f'[engines.x]\nkind = "sim"\n{sides}{more}')
    assert exit_code_of(["up", "--check", str(file)] if verb == "check" else [verb, str(file)]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "starting" not in told
    assert standings() == []


SMALL = '[engines.a]\nkind = "llamacpp"\n[engines.b]\nkind = "vllm"\npython = "{python}"\n'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WITHSTAND_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr("withstand.stack.llamacpp._NEEDS", ())
    monkeypatch.setattr("withstand.stack.small._TOOLS", (), raising=False)
    return tmp_path / "cache"


def test_a_check_fetches_nothing_and_says_what_would_be(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SMALL.format(python=sys.executable))
    assert exit_code_of(["up", "--check", str(file)]) == 0
    steps = "fetched (93 MB), then converted to F16, then laid out for Hugging Face"
    assert f"The small model is not ready here: it would first be {steps}\n" in capsys.readouterr().out
    assert not cache.exists()


@pytest.mark.parametrize("verb", ["up", "run"])
@pytest.mark.parametrize(
    ("python", "more", "said"),
    [
        ("/no/such/python", "", "b: there is no program /no/such/python."),
        (sys.executable, "[plan.workload.options]\nkinds = 1\n", "the dataset random has no option kinds"),
        (sys.executable, "", "a: llama.cpp is not installed (no_such_package missing): install withstand's extra "),
    ],
)
def test_what_is_missing_is_said_before_the_small_model_is_fetched(
    verb: str,
    python: str,
    more: str,
    said: str,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "llama.cpp" in said:
        monkeypatch.setattr("withstand.stack.llamacpp._NEEDS", ("no_such_package",))
    file = tmp_path / "s.toml"
    file.write_text(SMALL.format(python=python) + more)
    assert exit_code_of([verb, str(file)]) in {2, 3}
    assert said in capsys.readouterr().err
    assert not cache.exists()


def test_an_option_that_the_plans_dataset_has_not_is_what_was_typed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.toml"
    file.write_text('[engines.x]\nkind = "sim"\n[plan.workload]\ndataset = "agent"\nnum_prompts = 4\n')
    said = (
        "withstand: What was typed is wrong: the dataset agent has no option input_len / --input-len; "
        "it has kinds, output_len, shuffle - at `$.workload.options`.\n"
    )
    typed = ["run", str(file), "--input-len", "64", "--quiet"]
    assert exit_code_of(typed) == 2
    assert capsys.readouterr() == ("", said)
    assert exit_code_of(["up", str(file), "--quiet"]) == 0
    capsys.readouterr()
    assert exit_code_of(typed) == 2
    assert capsys.readouterr() == ("", said)
    assert exit_code_of(["down", str(file)]) == 0


@pytest.mark.parametrize("verb", ["run", "ab"])
@pytest.mark.parametrize(
    ("load", "said"),
    [
        ('[target]\nbase_url = "http://127.0.0.1:9"\n', "target.base_url leads elsewhere than to the stack. Leave"),
        (
            '[targets.x]\nbase_url = "http://127.0.0.1:9"\n[targets.y]\nbase_url = "http://127.0.0.1:8"\n',
            "targets.x.base_url leads elsewhere than to the stack.",
        ),
        (STACK, "p.toml is a stack's file, not a plan: withstand up"),
        ("[models.m]\n", "p.toml is a gateway's file, not a plan: withstand gateway"),
        ("[model]\n", "p.toml is an agent's file, not a plan: withstand agent"),
    ],
)
def test_another_plan_leads_into_the_stack(
    verb: str, load: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, plan = tmp_path / "s.toml", tmp_path / "p.toml"
    file.write_text(STACK + '[plan.targets.a]\nservice = "a"\n[plan.targets.g]\nservice = "gateway"\n')
    plan.write_text(load)
    assert exit_code_of([verb, str(file), "--plan", str(plan)]) == 2
    assert said in capsys.readouterr().err
    assert standings() == []


def test_one_target_is_not_asked_at_two_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.toml"
    file.write_text(STACK + '[plan.target]\nbase_url = "http://127.0.0.1:9"\n[plan.targets.a]\nservice = "a"\n')
    assert exit_code_of(["run", str(file)]) == 2
    assert "it and base_url both say who is asked; keep one of them - at `$.plan.targets.a.service`" in (
        capsys.readouterr().err
    )


SECRETS = {
    "is no regular file": None,
    "is larger than 64 KiB": b"x" * 70_000,
    "is not UTF-8": b"\xff\xfe",
    "holds a NUL, which no variable can": b"a\0b",
    "holds no secret; put it there": b" \n",
}


@pytest.mark.parametrize(("said", "held"), SECRETS.items())
def test_a_file_that_holds_no_secret_is_told_with_what_it_is(said: str, held: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "secret" if held else Path("/dev/null")
    if held:
        file.write_bytes(held)
    path = {"from_file": str(file)}
    with pytest.raises(UsageError, match=re.escape(f"a: env.KEY: the file {file} {said}")):
        planned(stack_of({"engines": {"a": SIM | {"env": {"KEY": path}}}}, "s"))
    with pytest.raises(UsageError, match=re.escape(f"engines.a.api_key: the file {file} {said}")):
        check_machine(stack_of({"engines": {"a": SIM | {"api_key": path}}, "gateway": {}}, "s"))


def test_a_pipe_is_not_waited_for_a_secret(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "s.toml").write_text(STACK.replace("[gateway]", 'env = { KEY = { from_file = "pipe" } }'))
    argv = [sys.executable, "-m", "withstand", "up", "--check", str(tmp_path / "s.toml")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == UsageError.exit_code
    assert "/pipe is no regular file; name one that holds the secret alone, as text." in done.stderr


def test_a_secret_that_is_not_there_is_told_with_its_field() -> None:
    for told, said in (
        ({"from_env": "NO_SUCH_KEY"}, "the variable NO_SUCH_KEY holds no secret; put it there."),
        ({"from_file": "/no/key"}, "the file /no/key is not there; put the secret into it."),
        ({"from_file": "n" * 5000}, "cannot be read: File name too long."),
    ):
        with pytest.raises(UsageError, match=re.escape(said)) as caught:
            planned(stack_of({"engines": {"a": SIM | {"env": {"KEY": told}}}}, "s"))
        assert str(caught.value).startswith("a: env.KEY: the ")


@pytest.fixture
def shut() -> Iterator[Path]:
    """A folder that is closed to us, in one that is not."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (closed := Path(folder) / "closed").mkdir(0o000)
        if user == 0:
            os.seteuid(65534)  # to root no folder is closed
        yield closed
        os.seteuid(user)


VLLM = {"kind": "vllm", "model": "org/m"}
UNSEEN = [
    ({"engines": {"a": LLAMA | {"model": "PATH"}}}, "engines.a.model"),
    ({"engines": {"a": VLLM | {"model": "PATH"}}}, "engines.a.model"),
    ({"engines": {"a": SIM | {"model": "PATH"}}}, "engines.a.model"),
    ({"engines": {"a": VLLM | {"speculative": {"draft_model": "PATH"}}}}, "engines.a.speculative.draft_model"),
    ({"engines": {"a": VLLM | {"python": "PATH"}}}, "engines.a.python"),
    ({"engines": {"a": {"kind": "command", "args": ["PATH"], "served_as": "m"}}}, "engines.a.args[0]"),
    ({"engines": {"a": SIM}, "edge": {"program": "PATH"}}, "edge.program"),
    ({"engines": {"a": SIM}, "monitoring": {"program": "PATH"}}, "monitoring.program"),
    ({"engines": {"a": SIM}, "edge": {"tls": {"certificate": "PATH", "key": "k.pem"}}}, "edge.tls.certificate"),
    ({"engines": {"a": SIM | {"api_key": {"from_file": "PATH"}}}, "gateway": {}}, "engines.a.api_key"),
]


@pytest.mark.parametrize(("tree", "field"), UNSEEN)
def test_what_may_not_be_looked_at_is_told_with_its_field(tree: dict[str, Any], field: str, shut: Path) -> None:
    for path, why in ((f"{shut}/m", "Permission denied"), ("closed/m", "Permission denied"), ("/" + "n" * 300, "")):
        told = json.loads(json.dumps(tree).replace("PATH", path))
        with pytest.raises(UsageError, match=f"{re.escape(path)} cannot be read: {why}") as caught:
            check_machine(with_programs(settled(stack_of(told, "s"), shut.parent), shut.parent))
        assert field in str(caught.value)


def test_what_is_exported_may_lie_where_it_cannot_be_looked_at(shut: Path) -> None:
    """It is read elsewhere; but the keys of a gateway are read here."""
    told = {"engines": {"a": LLAMA | {"model": f"{shut}/m", "api_key": {"from_file": f"{shut}/k"}}}, "gateway": {}}
    assert exported(settled(stack_of(told, "s"), shut.parent), "compose")
    told["gateway"] = {"config": {"keys_file": f"{shut}/keys.toml"}}
    with pytest.raises(UsageError, match=r"The keys_file .*/keys\.toml cannot be read: Permission denied\."):
        with_variables_of_keys(settled(stack_of(told, "s"), shut.parent))
