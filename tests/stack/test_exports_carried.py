"""What configurations of gateway and agent want of a machine is carried to another place, or it is said."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from withstand.agent.config import config_of as agent_config_of
from withstand.cli.export import verb
from withstand.errors import SpecError
from withstand.gateway.config import config_from_file
from withstand.stack.exports.carried import KEYS, STATE

SIM = {"kind": "sim", "deploy": {"image": "i"}}
GATEWAY: dict[str, Any] = {
    "keys_file": "keys.toml",
    "keys": {"bob": {"sha256_env": "BOB_HASH"}},
    "state": "g.sqlite3",
    "log": {"path": "a.jsonl"},
    "telemetry": {"otlp": "http://127.0.0.1:4318"},
    "cors": {"origins": ["http://localhost:3000"]},
}
AGENT = {
    "search": {"path": "kb"},
    "files": {"allow": ["kb"]},
    "sessions": {"path": "s.db"},
    "model": {"api_key_file": "the-key"},
}
TREE = {"engines": {"a": SIM}, "gateway": {"config": GATEWAY}, "agent": {"config": AGENT}}


def export(tree: dict[str, Any], place: str, folder: Path) -> Result:
    (folder / "chat.json").write_bytes(msgspec.json.encode(tree))
    (folder / "keys.toml").write_text(f'[keys.alice]\nsha256_env = "ALICE_HASH"\n[keys.c]\nsha256 = "{"0" * 64}"\n')
    return CliRunner().invoke(verb, [str(folder / "chat.json"), "--to", place, "--output", str(folder / "out")])


def configs(place: str, folder: Path) -> dict[str, str]:
    """Name → text, as the containers have them."""
    if place == "compose":
        return {f"{name}.json": (folder / f"out/{name}/{name}.json").read_text() for name in ("gateway", "agent")}
    objects = yaml.safe_load_all((folder / "out/kubernetes.yaml").read_text())
    return {name: text for each in objects if each["kind"] == "ConfigMap" for name, text in each["data"].items()}


@pytest.mark.parametrize("place", ["compose", "kubernetes"])
def test_a_gateway_finds_in_its_container_what_its_configuration_names(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container's own folders are stood in for by two of the test's."""
    done = export(TREE, place, tmp_path)
    assert done.exit_code == 0, done.output
    told = configs(place, tmp_path)
    (tmp_path / "mounted").mkdir()
    (tmp_path / "keys.toml").rename(tmp_path / "mounted/keys.toml")
    text = told["gateway.json"].replace(str(KEYS), str(tmp_path / "mounted"))
    (tmp_path / "gateway.json").write_text(text)
    gateway = config_from_file(tmp_path / "gateway.json")
    assert sorted(gateway.keys) == ["alice", "bob", "c"]
    assert not gateway.open
    assert (gateway.state, gateway.log_path) == (f"{STATE}/g.sqlite3", "-")
    agent = agent_config_of(msgspec.json.decode(told["agent.json"]))
    assert agent.sessions.path == f"{STATE}/s.db"
    assert (agent.search.path, agent.files.allow) == (f"{tmp_path}/kb", (f"{tmp_path}/kb",))
    assert (agent.model.api_key_env, agent.model.api_key_file) == ("KEY_THE_KEY", None)
    dockerfile = (tmp_path / "out/Dockerfile").read_text()
    assert "[agent,engine,gateway,gateway-otel]'" in dockerfile
    assert f"install -d -o withstand {STATE}\n" in dockerfile
    said = (tmp_path / "out/README.txt").read_text()
    assert done.stderr.startswith("Not exported to ")
    for line in done.stderr.splitlines()[:-1]:
        assert f"{line}\n" in said
    for field in ("keys_file", "state", "log.path", "telemetry.otlp"):
        assert f"(gateway.config.{field}); " in done.stderr
    for field in ("search.path", "files.allow[0]", "sessions.path"):
        assert f"(agent.config.{field}); " in done.stderr
    assert "localhost:3000" not in done.stderr


def test_compose_mounts_files_and_asks_for_variables(tmp_path: Path) -> None:
    assert export(TREE, "compose", tmp_path).exit_code == 0
    told = yaml.safe_load((tmp_path / "out/compose.yaml").read_text())
    gateway, agent = told["services"]["gateway"], told["services"]["agent"]
    assert gateway["environment"] == {"ALICE_HASH": "${ALICE_HASH:?}", "BOB_HASH": "${BOB_HASH:?}"}
    assert gateway["secrets"] == [{"source": "gateway-keys", "target": f"{KEYS}/keys.toml"}]
    assert told["secrets"] == {"gateway-keys": {"file": f"{tmp_path}/keys.toml"}}
    assert {"type": "volume", "source": "gateway-state", "target": str(STATE)} in gateway["volumes"]
    assert agent["environment"] == {"KEY_THE_KEY": "${the_key:?}"}
    kb = f"{tmp_path}/kb"
    assert {"type": "bind", "source": kb, "target": kb, "read_only": True} in agent["volumes"]
    assert told["volumes"] == {"gateway-state": {}, "agent-state": {}}


def test_kubernetes_mounts_files_and_asks_for_variables(tmp_path: Path) -> None:
    done = export(TREE, "kubernetes", tmp_path)
    objects = yaml.safe_load_all((tmp_path / "out/kubernetes.yaml").read_text())
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment"
    }
    gateway, agent = pods["chat-gateway"], pods["chat-agent"]
    env = {each["name"]: each["valueFrom"]["secretKeyRef"]["key"] for each in gateway["containers"][0]["env"]}
    assert env == {"ALICE_HASH": "ALICE_HASH", "BOB_HASH": "BOB_HASH"}
    volumes = {each["name"]: each for each in gateway["volumes"]}
    assert volumes["keys"]["secret"]["items"] == [{"key": "keys.toml", "path": "keys.toml"}]
    mounts = {each["name"]: each["mountPath"] for each in gateway["containers"][0]["volumeMounts"]}
    assert (mounts["keys"], mounts["state"]) == (str(KEYS), str(STATE))
    assert {"name": "models", "mountPath": f"{tmp_path}/kb", "subPath": "kb", "readOnly": True} in agent["containers"][
        0
    ]["volumeMounts"]
    said = (tmp_path / "out/README.txt").read_text()
    secrets = " ".join(f"--from-literal={name}=…" for name in ("ALICE_HASH", "BOB_HASH", "the-key"))
    assert f"{secrets} --from-file=keys.toml={tmp_path}/keys.toml\n" in said
    assert "that holds kb;" in said
    assert "(gateway.config.state); what comes is lost with its pod, and each replica has its own" in done.stderr


def test_a_variable_that_the_stack_sets_itself_is_left_so(tmp_path: Path) -> None:
    env = {"A": {"from_env": "OURS"}, "B": "0" * 64}
    keys = {"a": {"sha256_env": "A"}, "b": {"sha256_env": "B"}}
    tree = {"engines": {"a": SIM}, "gateway": {"env": env, "config": {"keys": keys}}}
    assert export(tree, "compose", tmp_path).exit_code == 0
    told = yaml.safe_load((tmp_path / "out/compose.yaml").read_text())
    assert told["services"]["gateway"]["environment"] == {"A": "${OURS:?}", "B": "0" * 64}


@pytest.mark.parametrize(
    ("config", "extras"),
    [
        ({"state": "redis://r"}, "gateway-redis"),
        ({"state": "postgresql://p/d"}, "gateway-postgres"),
        ({"state_env": "STATE"}, "gateway-postgres,gateway-redis"),
    ],
)
def test_a_server_that_keeps_the_state_is_asked_by_the_image(
    config: dict[str, Any], extras: str, tmp_path: Path
) -> None:
    done = export({"engines": {"a": SIM}, "gateway": {"config": config}}, "compose", tmp_path)
    assert f"[agent,engine,gateway,{extras}]'" in (tmp_path / "out/Dockerfile").read_text()
    assert "gateway.config.state" not in done.stderr


def test_what_the_gateway_itself_would_start_is_named(tmp_path: Path) -> None:
    engines = [{"url": "http://127.0.0.1:9", "command": ["serve", "x"], "cwd": "w"}, {"url": "http://127.0.0.1:8"}]
    tree = {"engines": {"a": SIM}, "gateway": {"config": {"models": {"m": {"engines": engines}}}}}
    said = export(tree, "compose", tmp_path).stderr
    assert "the program serve (gateway.config.models.m.engines[0].command[0]); have it in an image of your own" in said
    assert f"what lies at {tmp_path}/w (gateway.config.models.m.engines[0].cwd); have it at this path there" in said
    assert "http://127.0.0.1:8 (gateway.config.models.m.engines[1].url); a container would ask itself there" in said
    assert "127.0.0.1:9 " not in said


def test_two_folders_of_one_name_have_no_room_on_one_volume(tmp_path: Path) -> None:
    tree = {"engines": {"a": SIM}, "agent": {"config": {"files": {"allow": ["/a/kb", "/b/kb"]}}}}
    raised = export(tree, "kubernetes", tmp_path).exception
    assert isinstance(raised, SpecError)
    assert "on the volume /b/kb would have the name of /a/kb; rename one of them - at `$.agent.config`" in str(raised)
    assert export(tree, "compose", tmp_path).exit_code == 0


def seats(*engines: dict[str, Any]) -> dict[str, Any]:
    return {"models": {"m": {"engines": list(engines)}}}


@pytest.mark.parametrize(("one", "other"), [("k/key", "l/KEY"), ("k/key.a", "l/KEY-A")])
def test_two_files_of_keys_are_not_one_variable(one: str, other: str, tmp_path: Path) -> None:
    both = seats(*({"url": f"http://{file[0]}:1", "api_key_file": file} for file in (one, other)))
    raised = export({"engines": {"a": SIM}, "gateway": {"config": both}}, "compose", tmp_path).exception
    assert isinstance(raised, SpecError)
    assert "engines[1].api_key_file" in str(raised)
    assert "rename one of the files" in str(raised)


@pytest.mark.parametrize("value", ["plain", {"from_env": "OTHER"}])
def test_the_key_of_a_file_does_not_come_by_a_variable_that_is_taken(value: object, tmp_path: Path) -> None:
    config = seats({"url": "http://k:1", "api_key_file": "k/key"})
    tree = {"engines": {"a": SIM}, "gateway": {"env": {"KEY_KEY": value}, "config": config}}
    raised = export(tree, "kubernetes", tmp_path).exception
    assert isinstance(raised, SpecError)
    assert "is of the key in a file; give it another name, or rename the file" in str(raised)
    assert "$.gateway.env.KEY_KEY" in str(raised)


def test_a_variable_is_not_that_of_a_file(tmp_path: Path) -> None:
    keys = ({"api_key_file": "k/key"}, {"api_key_env": "KEY_KEY"})
    config = seats(*({"url": f"http://h:{i}", **key} for i, key in enumerate(keys, start=1)))
    raised = export({"engines": {"a": SIM}, "gateway": {"config": config}}, "compose", tmp_path).exception
    assert isinstance(raised, SpecError)
    assert "rename one of the files" in str(raised)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"state": "a/u.db", "host": {"state": "b/u.db"}}, "gateway.config.host.state"),
        (
            seats(*({"url": f"http://h:{i}", "command": ["x"], "log": f"e{i}/engine.log"} for i in (1, 2))),
            "gateway.config.models.m.engines[1].log",
        ),
    ],
)
def test_two_files_that_are_written_do_not_become_one(config: dict[str, Any], field: str, tmp_path: Path) -> None:
    tree = {"engines": {"a": SIM}, "gateway": {"config": config}}
    raised = export(tree, "compose", tmp_path).exception
    assert isinstance(raised, SpecError)
    assert "would have the name of" in str(raised)
    assert f"$.{field}" in str(raised)
    elsewhere = {**tree, "engines": {"a": {"kind": "llamacpp", "model": "/m.gguf"}}}
    assert export(elsewhere, "modal", tmp_path).exit_code == 0


def test_one_file_that_two_fields_name_stays_one(tmp_path: Path) -> None:
    config = {"state": "a/u.db", "host": {"state": "a/../a/u.db"}, "log": {"path": "x/u.db"}}
    assert export({"engines": {"a": SIM}, "gateway": {"config": config}}, "compose", tmp_path).exit_code == 0


def test_compose_mounts_names_with_its_own_signs(tmp_path: Path) -> None:
    (tmp_path / "d$HOME").mkdir()
    (tmp_path / "d$HOME/keys.toml").write_text("")
    model = "/models/we$ird:name/L"
    gateway = {"config": {"keys_file": "d$HOME/keys.toml"}}
    engine = {"kind": "llamacpp", "model": model}
    tree = {"engines": {"a": engine}, "gateway": gateway, "agent": {"config": {"files": {"allow": ["a:b$c"]}}}}
    assert export(tree, "compose", tmp_path).exit_code == 0
    told = yaml.safe_load((tmp_path / "out/compose.yaml").read_text())
    [mount] = told["services"]["a"]["volumes"]
    assert mount == {
        "type": "bind",
        "source": "/models/we$$ird:name/L",
        "target": "/models/we$$ird:name/L",
        "read_only": True,
    }
    assert told["services"]["agent"]["volumes"][0]["source"] == f"{tmp_path}/a:b$$c"
    assert told["secrets"]["gateway-keys"]["file"] == f"{tmp_path}/d$$HOME/keys.toml"


@pytest.mark.parametrize("place", ["kubernetes", "kuberay"])
def test_kubernetes_takes_no_path_with_a_colon(place: str, tmp_path: Path) -> None:
    engine = {"kind": "vllm", "python": "/p", "model": "/models/a:b"}
    raised = export({"engines": {"a": engine}}, place, tmp_path).exception
    assert isinstance(raised, SpecError)
    assert "mounts nothing at a path with a colon; rename /models/a:b - at `$.engines.a.model`" in str(raised)


def test_a_path_is_written_as_it_leads(tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    config = {"files": {"allow": ["../kb", "x/../y"]}}
    assert export({"engines": {"a": SIM}, "agent": {"config": config}}, "compose", folder).exit_code == 0
    told = msgspec.json.decode((folder / "out/agent/agent.json").read_bytes())
    assert told["files"]["allow"] == [f"{tmp_path}/kb", f"{folder}/y"]


def test_a_path_over_a_link_leads_where_it_did(tmp_path: Path) -> None:
    (tmp_path / "far/folder").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far/folder")
    config = {"files": {"allow": ["link/../kb"]}}
    assert export({"engines": {"a": SIM}, "agent": {"config": config}}, "compose", tmp_path).exit_code == 0
    [path] = msgspec.json.decode((tmp_path / "out/agent/agent.json").read_bytes())["files"]["allow"]
    assert Path(path).resolve() == tmp_path / "far/kb"
