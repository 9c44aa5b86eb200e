"""What an export cannot bring to a place is said, and what it brings is what the place takes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from withstand.cli.export import verb
from withstand.errors import SpecError

VLLM = {
    "kind": "vllm",
    "python": "/p",
    "model": "/models/large",
    "env": {"HF_TOKEN": {"from_env": "OUR_TOKEN"}, "KEY": {"from_file": "/keys/a-key"}},
    "deploy": {"gpus": 1, "gpu": "H100", "max_replicas": 3},
}
SMALL = {"kind": "llamacpp", "model": "/models/s.gguf"}
CHAT = {"engines": {"large": VLLM}, "gateway": {}, "agent": {}}


def export(tree: dict[str, Any], place: str, folder: Path) -> Result:
    told = folder / "exp.json"
    told.write_bytes(msgspec.json.encode(tree))
    return CliRunner().invoke(verb, [str(told), "--to", place, "--output", str(folder / place), "--force"])


def written(tree: dict[str, Any], place: str, folder: Path) -> dict[str, str]:
    done = export(tree, place, folder)
    assert done.exit_code == 0, done.output
    return {file.name: file.read_text("utf-8") for file in (folder / place).iterdir() if file.is_file()}


def test_ray_takes_secrets_from_its_nodes(tmp_path: Path) -> None:
    files = written(CHAT, "ray", tmp_path)
    [model] = yaml.safe_load(files["serve.yaml"])["applications"][0]["args"]["llm_configs"]
    env = model["runtime_env"]["env_vars"]
    assert (env["HF_TOKEN"], env["KEY"]) == ("${OUR_TOKEN}", "${a_key}")
    said = export(CHAT, "ray", tmp_path).stderr
    assert "Not exported to ray: the value of OUR_TOKEN; set OUR_TOKEN on each node, before its `ray start`.\n" in said
    assert "Not exported to ray: the value of a-key; set a_key on each node" in said
    assert "Not exported to ray: the model /models/large; have it at this path on each node.\n" in said
    assert "the value of" not in export(CHAT, "kuberay", tmp_path).stderr


def test_compose_opens_the_gateway_behind_an_agent_and_names_what_it_cannot_say(tmp_path: Path) -> None:
    tree = {
        **CHAT,
        "engines": {"large": {**VLLM, "deploy": {"gpu": "H100", "max_replicas": 3}}},
        "gateway": {"copies": 2},
    }
    services = yaml.safe_load(written(tree, "compose", tmp_path)["compose.yaml"])["services"]
    ports = {name: each.get("ports") for name, each in services.items()}
    assert ports == {"large": None, "gateway": ["127.0.0.1:8001:8001"], "agent": ["127.0.0.1:8002:8002"]}
    [device] = services["large"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
    assert "scale" not in services["gateway"]
    said = export(tree, "compose", tmp_path).stderr
    assert "the type of large's GPUs (H100); compose takes any that the machine has.\n" in said
    assert "max_replicas of large; compose has no autoscaling; 1 run, more with `docker compose up --scale" in said
    assert "replicas of gateway; one runs, for the port is one's.\n" in said


@pytest.mark.parametrize(
    ("gpu", "labels"),
    [
        ("H100", ["NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe", "NVIDIA-H100-NVL"]),
        ("l4", ["NVIDIA-L4"]),
        ("NVIDIA-GH200-480GB", ["NVIDIA-GH200-480GB"]),
    ],
)
def test_kubernetes_finds_nodes_by_the_labels_that_they_have(gpu: str, labels: list[str], tmp_path: Path) -> None:
    files = written({"engines": {"large": {**VLLM, "deploy": {"gpu": gpu}}}}, "kubernetes", tmp_path)
    objects = yaml.safe_load_all(files["kubernetes.yaml"])
    [pod] = [each["spec"]["template"]["spec"] for each in objects if each["kind"] == "Deployment"]
    wanted = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert wanted == [{"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": labels}]}]
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert f"nvidia.com/gpu.product={' or '.join(labels)} (" in files["README.txt"]


@pytest.mark.parametrize(("name", "first"), [("one", "one"), ("2nd", "s-2nd")])
def test_two_stacks_have_room_in_one_namespace(name: str, first: str, tmp_path: Path) -> None:
    tree = {"name": name, **CHAT, "engines": {"large": VLLM, "small": SMALL}}
    files = written(tree, "kubernetes", tmp_path)
    objects = list(yaml.safe_load_all(files["kubernetes.yaml"]))
    services = [each["metadata"]["name"] for each in objects if each["kind"] == "Service"]
    assert services == [f"{first}-{each}" for each in ("large", "small", "gateway", "agent")]
    asked = [text for each in objects if each["kind"] == "ConfigMap" for text in each["data"].values()]
    for address in (f"{first}-large:8000", f"{first}-small:8001", f"{first}-gateway:8002"):
        assert any(f'http://{address}"' in text for text in asked)
    assert f"The door is the Service {first}-agent." in files["README.txt"]


def test_a_rollout_needs_no_spare_gpu_and_memory_is_asked_for(tmp_path: Path) -> None:
    files = written({**CHAT, "engines": {"large": VLLM, "small": SMALL}}, "kubernetes", tmp_path)
    deployments = [each for each in yaml.safe_load_all(files["kubernetes.yaml"]) if each["kind"] == "Deployment"]
    told = {
        each["metadata"]["labels"]["app.kubernetes.io/name"]: (
            each["spec"]["strategy"]["rollingUpdate"],
            each["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"],
        )
        for each in deployments
    }
    with_gpu, without = {"maxUnavailable": 1, "maxSurge": 0}, {"maxUnavailable": 0, "maxSurge": 1}
    assert told["large"] == (with_gpu, "16000000000")
    assert told["small"] == (without, "4000000000")
    assert told["gateway"] == told["agent"] == (without, "500000000")
    assert "so large with one replica is away meanwhile" in files["README.txt"]


def test_kuberay_tells_what_must_be_there(tmp_path: Path) -> None:
    named = {**VLLM, "deploy": {**VLLM["deploy"], "image": "ours/vllm:1"}}
    files = written({"engines": {"large": named}}, "kuberay", tmp_path)
    version = yaml.safe_load(files["rayservice.yaml"])["spec"]["rayClusterConfig"]["rayVersion"]
    told = files["README.txt"]
    assert "kubectl create secret generic exp-secrets --from-literal=OUR_TOKEN=… --from-literal=a-key=…\n" in told
    assert "a PersistentVolumeClaim exp-models" in told
    assert "kubectl cp large POD:/upload/large\n" in told
    assert f"RUN pip install 'ray[serve,llm]=={version}'\n" in told
    assert "ours/vllm:1" in told


def test_modal_tells_what_must_be_there(tmp_path: Path) -> None:
    told = written({"engines": {"large": VLLM, "small": SMALL}}, "modal", tmp_path)["README.txt"]
    assert "modal secret create exp-secrets HF_TOKEN=… KEY=…\n" in told
    assert "modal volume create exp-models\n" in told
    assert "modal volume put exp-models large /large\n" in told
    assert "modal volume put exp-models s.gguf /s.gguf\n" in told
    assert "pip wheel --no-deps" in told
    small = written({"engines": {"small": {"kind": "llamacpp"}}}, "modal", tmp_path)["README.txt"]
    assert "secret" not in small
    assert "volume" not in small


@pytest.mark.parametrize(("place", "file"), [("ray", "serve.yaml"), ("kuberay", "rayservice.yaml")])
def test_ray_takes_its_engines_and_leaves_the_others(place: str, file: str, tmp_path: Path) -> None:
    tree = {"engines": {"small": SMALL, "large": VLLM}, "gateway": {}}
    text = written(tree, place, tmp_path)[file]
    assert "model_source: /models/large" in text
    assert "s.gguf" not in text
    said = (
        f"Not exported to {place}: small; Ray Serve LLM runs vllm, not llamacpp: export it to compose or kubernetes.\n"
    )
    assert said in export(tree, place, tmp_path).stderr


APART = {f"{role}-er": {**VLLM, "env": {}, "role": role, "served_as": "m"} for role in ("prefill", "decode")}


@pytest.mark.parametrize(
    ("place", "tree", "said"),
    [
        ("ray", {"engines": {"small": SMALL}}, "Ray Serve LLM runs vllm, and there is none among these (llamacpp)"),
        ("kuberay", {"engines": {"small": SMALL}}, "Ray Serve LLM runs vllm, and there is none"),
        ("compose", {"engines": APART, "gateway": {}}, "compose tells no container its own address"),
        ("kubernetes", {"engines": {"l": {**VLLM, "deploy": {"min_replicas": 0}}}}, "an autoscaler of Kubernetes does"),
    ],
)
def test_a_stack_that_is_right_is_not_called_wrong(place: str, tree: dict[str, Any], said: str, tmp_path: Path) -> None:
    done = export(tree, place, tmp_path)
    assert done.exit_code != 0
    assert isinstance(done.exception, SpecError)
    told = str(done.exception)
    assert told.startswith(f"The stack {tmp_path / 'exp.json'} cannot be exported to {place}: {said}")
    assert "wrong" not in told


@pytest.mark.parametrize(("sequences", "target"), [(None, 16), (4, 4), (64, 16)])
def test_no_replica_is_meant_for_more_requests_than_it_works_on(
    sequences: int | None, target: int, tmp_path: Path
) -> None:
    tree = {"engines": {"large": {**VLLM, "max_sequences": sequences}}}
    app = written(tree, "modal", tmp_path)["modal_app.py"]
    assert f"@modal.concurrent(max_inputs={2 * target}, target_inputs={target})" in app
    [model] = yaml.safe_load(written(tree, "ray", tmp_path)["serve.yaml"])["applications"][0]["args"]["llm_configs"]
    assert model["deployment_config"]["autoscaling_config"]["target_ongoing_requests"] == target
    objects = yaml.safe_load_all(written(tree, "kubernetes", tmp_path)["kubernetes.yaml"])
    [scaler] = [each["spec"]["metrics"][0] for each in objects if each["kind"] == "HorizontalPodAutoscaler"]
    assert scaler["pods"]["target"]["averageValue"] == str(target)


def test_llamacpp_has_as_many_at_once_as_it_takes_by_itself(tmp_path: Path) -> None:
    assert "target_inputs=8)" in written({"engines": {"small": SMALL}}, "modal", tmp_path)["modal_app.py"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/b/a-key", "elsewhere it would have the name of `$.engines.large.env.KEY`, a-key; rename one of the files"),
        ("/b/a_key", "elsewhere it would have the name of"),
        ("/b/1tok", "'1tok' is no name for a secret elsewhere"),
        ("/b/é", "'é' is no name for a secret elsewhere"),
    ],
)
def test_each_secret_keeps_a_name_of_its_own(path: str, said: str, tmp_path: Path) -> None:
    other = {**VLLM, "env": {"OTHER": {"from_file": path}}}
    done = export({"engines": {"large": VLLM, "other": other}}, "compose", tmp_path)
    assert isinstance(done.exception, SpecError)
    assert said in str(done.exception)
    assert "$.engines.other.env.OTHER" in str(done.exception)
