"""A stack's vLLM engines as a RayService of KubeRay. Pure."""

from collections.abc import Iterator
from typing import Any

from withstand.spec.stack import Secret, Stack
from withstand.stack.exports.container import CORES, volumes_of
from withstand.stack.exports.kubernetes import check_volume, labels_of, secret_env
from withstand.stack.exports.ray_serve import on_ray, serve_config, that_fits
from withstand.stack.exports.secrets import key_of
from withstand.stack.exports.told import kept, last, readme
from withstand.stack.exports.yaml import document, whole

_IMAGE, _VERSION = "rayproject/ray-llm:2.60.0-py311-cu128", "2.60.0"
_PORTS = {"serve": 8000, "metrics": 8080, "gcs": 6379, "dashboard": 8265, "client": 10001}


def kuberay(stack: Stack) -> dict[str, str]:
    """``rayservice.yaml``, and what it wants: one group of workers for each engine.

    Raises:
        SpecError: an engine cannot run on Ray as it is described.
    """
    stack = that_fits(stack)
    engines = [(f"engines.{name}.model", stack.engines[name].model) for name in on_ray(stack)]
    check_volume((where, path) for where, model in engines for path in volumes_of(model))
    env = secret_env(_secrets(stack), stack.name)
    groups = [_group(name, stack, env) for name in on_ray(stack)]
    longest_s = max(stack.engines[name].deploy.longest_stream_s for name in on_ray(stack))
    spec = {
        "serveConfigV2": document(serve_config(stack)),
        # An upgrade brings up a second cluster; the old one is kept until its last answer has ended.
        "rayClusterDeletionDelaySeconds": whole(longest_s),
        "rayClusterConfig": {
            "rayVersion": _VERSION,
            "enableInTreeAutoscaling": True,
            "headGroupSpec": {
                "rayStartParams": {"num-cpus": "0", "num-gpus": "0", "dashboard-host": "0.0.0.0"},  # noqa: S104
                "template": {"spec": {"containers": [_container("ray-head", _image(stack), env, _small())]}},
            },
            "workerGroupSpecs": groups,
        },
    }
    head = {"name": stack.name, "labels": labels_of("ray", stack.name)}
    service = {"apiVersion": "ray.io/v1", "kind": "RayService", "metadata": head, "spec": spec}
    return {"rayservice.yaml": document(service), **readme(_told(stack))}


def _told(stack: Stack) -> Iterator[str]:
    """What must be there before."""
    engines = [stack.engines[name] for name in on_ray(stack)]
    yield f"The door is the Service {stack.name}-serve-svc, port {_PORTS['serve']}; it comes when the models are there."
    yield "Before `kubectl apply -f rayservice.yaml`:"
    yield "- KubeRay's operator"
    yield from kept(
        stack.name, _secrets(stack).values(), [path for engine in engines for path in volumes_of(engine.model)]
    )
    needed = f"ray[serve,llm]=={_VERSION}"
    yield f"- in each image {needed} (the rayVersion) and vLLM, for workers as for the head. {_IMAGE} has both;"
    yield "  vllm/vllm-openai has no Ray Serve, so an image (deploy.image) made of it wants:"
    yield f"  RUN pip install '{needed}'"
    images = dict.fromkeys(image for engine in engines if (image := engine.deploy.image))
    yield from (f"  Have a look at {image}, which this stack names." for image in images)


def _secrets(stack: Stack) -> dict[str, str]:
    """Variable → key, of all engines on Ray: the nodes have them all."""
    env = (item for name in on_ray(stack) for item in stack.engines[name].env.items())
    return {name: key_of(value) for name, value in env if isinstance(value, Secret)}


def _image(stack: Stack, name: str | None = None) -> str:
    engine = stack.engines[name or on_ray(stack)[0]]
    return engine.deploy.image or _IMAGE


def _small() -> dict[str, Any]:
    size = {"cpu": "2", "memory": "8Gi"}
    return {"requests": size, "limits": size}


def _group(name: str, stack: Stack, env: list[dict[str, Any]]) -> dict[str, Any]:
    engine = stack.engines[name]
    size = {
        "cpu": str(len(engine.room.cpus) or engine.threads or CORES),
        "memory": str(int((engine.room.memory_gb or 16) * 1e9)),
    }
    if engine.deploy.gpus:
        size["nvidia.com/gpu"] = str(engine.deploy.gpus)
    container = _container("ray-worker", _image(stack, name), env, {"requests": size, "limits": size})
    pod: dict[str, Any] = {
        "containers": [container],
        "terminationGracePeriodSeconds": whole(engine.deploy.longest_stream_s + engine.stop_s),
    }
    for path in volumes_of(engine.model):
        claim = {"claimName": f"{stack.name}-models", "readOnly": True}
        pod["volumes"] = [{"name": "models", "persistentVolumeClaim": claim}]
        container["volumeMounts"] = [{"name": "models", "mountPath": path, "subPath": last(path), "readOnly": True}]
    return {
        "groupName": name,
        "replicas": engine.deploy.min_replicas,
        "minReplicas": engine.deploy.min_replicas,
        "maxReplicas": engine.deploy.most_replicas,
        "rayStartParams": {},
        "template": {"spec": pod},
    }


def _container(name: str, image: str, env: list[dict[str, Any]], resources: dict[str, Any]) -> dict[str, Any]:
    ports = [{"name": port, "containerPort": number} for port, number in _PORTS.items()] if name == "ray-head" else []
    return {"name": name, "image": image, "env": env, "ports": ports, "resources": resources}
