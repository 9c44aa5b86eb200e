"""A stack as Kubernetes runs it: Deployments, Services, autoscalers, monitors. Pure.

Streams are long, so ends are slow: a pod that is to go gets no new requests, and lives until its last answer has ended.
"""

from collections.abc import Iterable
from typing import Any

from withstand.record import Seen
from withstand.spec.mistake import wrong
from withstand.spec.stack import Stack
from withstand.stack.composed import AGENT, GATEWAY
from withstand.stack.exports.carried import KEYS, STATE
from withstand.stack.exports.container import CONFIG, OURS, Container, build, containers, dockerfile, door
from withstand.stack.exports.gpus import LABEL, affinity, products
from withstand.stack.exports.told import kept, last, readme
from withstand.stack.exports.yaml import documents, whole
from withstand.wire.engine_metrics import ENGINES

_UNROUTE_S = 10
"""Until all of the cluster has heard that a pod takes no more."""
_PROBE_S = 5
_ENGINES = {"vllm": "vLLM", "sim": "vLLM", "sglang": "SGLang", "tgi": "TGI", "llamacpp": "llama.cpp"}
_ENGINES |= {"trtllm": "TensorRT-LLM"}
"""Kind → whose names of metrics it has."""
_OURS = {GATEWAY: "withstand_gateway_requests_in_flight", AGENT: "withstand_agent_requests_in_flight"}


def kubernetes(stack: Stack, inference_gateway: str | None = None) -> dict[str, str]:
    """``kubernetes.yaml``. ``inference_gateway`` is a Gateway (gateway.networking.k8s.io) that requests come by.

    The Secret ``NAME-secrets`` and the claim ``NAME-models`` are the user's to make.

    Raises:
        SpecError: a service cannot run there as it is described.
    """
    entry, all_of_them = door(stack), containers(stack, lambda name: _address(name, stack.name))
    objects: list[dict[str, Any]] = []
    for each in all_of_them:
        if each.deploy.min_replicas == 0:
            at = each.name if each.is_in_front else f"engines.{each.name}"
            what = "an autoscaler of Kubernetes does not go down to 0 replicas; take 1, or export to kuberay or modal"
            raise wrong(f"{at}.deploy.min_replicas", what)
        objects += _objects(each, stack.name)
    _check_volumes(all_of_them)
    pooled = [each for each in all_of_them if inference_gateway and not each.is_in_front]
    if inference_gateway:
        objects += _inference(stack.name, inference_gateway, pooled)
    files = {"kubernetes.yaml": documents(objects), **dockerfile(all_of_them)}
    return files | readme(_told(stack.name, entry, all_of_them, [f"{stack.name}-{each.name}" for each in pooled]))


def _check_volumes(all_of_them: tuple[Container, ...]) -> None:
    check_volume(
        (f"{each.name}.config" if each.is_in_front else f"engines.{each.name}.model", path)
        for each in all_of_them
        for path in each.volumes
    )


def check_volume(paths: Iterable[tuple[str, str]]) -> None:
    """It has each under its own name; ``paths`` by where they stand.

    Raises:
        SpecError: one cannot be there, or two would be one.
    """
    owners = dict[str, str]()
    for where, path in paths:
        if ":" in path:
            raise wrong(where, f"Kubernetes mounts nothing at a path with a colon; rename {path}")
        if (other := owners.setdefault(last(path), path)) != path:
            raise wrong(where, f"on the volume {path} would have the name of {other}; rename one of them")


def _objects(container: Container, stack: str) -> list[dict[str, Any]]:
    name, labels = f"{stack}-{container.name}", labels_of(container.name, stack)
    found = [_deployment(container, stack), _service(container, stack)]
    if container.files:
        found.insert(0, {**_head("v1", "ConfigMap", name, labels), "data": dict(container.files)})
    if _scales(container):
        found.append(_autoscaler(container, name, labels))
    if container.process.metrics:
        endpoints = [{"port": "http", "path": container.process.metrics, "interval": "15s"}]
        spec = {"selector": {"matchLabels": labels}, "podMetricsEndpoints": endpoints}
        found.append({**_head("monitoring.coreos.com/v1", "PodMonitor", name, labels), "spec": spec})
    return found


def _head(version: str, kind: str, name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}}


def labels_of(service: str, stack: str) -> dict[str, str]:
    """By which its pods are known."""
    return {"app.kubernetes.io/name": service, "app.kubernetes.io/part-of": stack}


def _address(service: str, stack: str) -> str:
    """The name of its Service; such a name begins with a letter, as a stack's need not."""
    return f"{stack}-{service}" if stack[0].isalpha() else f"s-{stack}-{service}"


def _service(container: Container, stack: str) -> dict[str, Any]:
    labels = labels_of(container.name, stack)
    ports: list[dict[str, Any]] = [{"name": "http", "port": container.process.port, "targetPort": "http"}]
    if bootstrap := container.process.bootstrap_port:
        ports.append({"name": "bootstrap", "port": bootstrap})
    return {
        **_head("v1", "Service", _address(container.name, stack), labels),
        "spec": {"selector": labels, "ports": ports},
    }


def _deployment(container: Container, stack: str) -> dict[str, Any]:
    labels = labels_of(container.name, stack)
    volumes, mounts = _volumes(container, stack)
    pod = {
        "containers": [_pod_container(container, stack, mounts)],
        "terminationGracePeriodSeconds": whole(_UNROUTE_S + container.end_s),
        # Variables of each Service would be laid over an engine's own: vLLM reads VLLM_PORT.
        "enableServiceLinks": False,
        "volumes": volumes,
    }
    if container.deploy.gpu:
        pod["affinity"] = affinity(container.deploy.gpu)
    # A pod more than there are wants GPUs more than there are.
    surge = 0 if container.deploy.gpus else 1
    spec = {
        "selector": {"matchLabels": labels},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1 - surge, "maxSurge": surge}},
        # A model that loads for half an hour is slow, not stuck.
        "progressDeadlineSeconds": whole(container.process.upkeep.ready_s) + 600,
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    if not _scales(container):  # else they are the autoscaler's
        spec["replicas"] = container.deploy.min_replicas
    return {**_head("apps/v1", "Deployment", f"{stack}-{container.name}", labels), "spec": spec}


def _pod_container(container: Container, stack: str, mounts: list[dict[str, Any]]) -> dict[str, Any]:
    process = container.process
    # Gateway and agent drain when they are told to end; an engine drops its streams then, so it is told late.
    wait_s = _UNROUTE_S if container.is_in_front else _UNROUTE_S + whole(container.deploy.longest_stream_s)
    asked = {"path": process.health, "port": "http"}
    ready = {"path": "/ready", "port": "http"} if process.kind == GATEWAY else asked
    return {
        "name": container.name,
        "image": container.image,
        "command": [part.replace("$(", "$$(") for part in container.argv],
        "env": _env(container, stack),
        "ports": [{"name": "http", "containerPort": process.port}],
        "startupProbe": {
            "httpGet": asked,
            "periodSeconds": _PROBE_S,
            "failureThreshold": max(1, whole(process.upkeep.ready_s / _PROBE_S)),
        },
        "readinessProbe": {"httpGet": ready, "periodSeconds": _PROBE_S, "timeoutSeconds": 4, "failureThreshold": 2},
        # An engine under load answers late: it is dead only after a minute and a half of silence.
        "livenessProbe": {"httpGet": asked, "periodSeconds": 15, "timeoutSeconds": 10, "failureThreshold": 6},
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(wait_s)]}}},
        "resources": _resources(container),
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": mounts,
    }


def _env(container: Container, stack: str) -> list[dict[str, Any]]:
    plain = [{"name": name, "value": value.replace("$(", "$$(")} for name, value in container.env.items()]
    own = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    return [*plain, *({"name": name, **own} for name in container.own_address), *secret_env(container.secrets, stack)]


def secret_env(secrets: dict[str, str], stack: str) -> list[dict[str, Any]]:
    """Variables whose values are kept in the stack's Secret."""
    kept = {"name": f"{stack}-secrets"}
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {**kept, "key": key}}} for name, key in sorted(secrets.items())
    ]


def _resources(container: Container) -> dict[str, Any]:
    room = container.process.upkeep.room
    limits: dict[str, str] = {}
    requests: dict[str, str] = {"cpu": str(container.cores), "memory": str(int(container.memory_gb * 1e9))}
    if room.cpus:
        limits["cpu"] = requests["cpu"]
    if room.memory_gb:
        limits["memory"] = requests["memory"]
    if container.deploy.gpus:
        limits["nvidia.com/gpu"] = str(container.deploy.gpus)
    return {"requests": requests, **({"limits": limits} if limits else {})}


def _volumes(container: Container, stack: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    if container.files:
        volumes.append({"name": "config", "configMap": {"name": f"{stack}-{container.name}"}})
        mounts.append({"name": "config", "mountPath": str(CONFIG), "readOnly": True})
    if container.volumes:
        claim = {"claimName": f"{stack}-models", "readOnly": True}
        volumes.append({"name": "models", "persistentVolumeClaim": claim})
        # The claim has each model under its own name.
        mounts += [
            {"name": "models", "mountPath": path, "subPath": path.rpartition("/")[2], "readOnly": True}
            for path in container.volumes
        ]
    if container.keys_file:
        key = last(container.keys_file)
        secret = {"secretName": f"{stack}-secrets", "items": [{"key": key, "path": key}]}
        volumes.append({"name": "keys", "secret": secret})
        mounts.append({"name": "keys", "mountPath": str(KEYS), "readOnly": True})
    if container.writes:
        volumes.append({"name": "state", "emptyDir": {}})
        mounts.append({"name": "state", "mountPath": str(STATE)})
    if container.deploy.gpus:
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory"}})
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108  where tensor parallelism talks
    return volumes, mounts


def _scales(container: Container) -> bool:
    return container.deploy.most_replicas > container.deploy.min_replicas


def _busy(container: Container) -> str:
    """The series that counts its requests at once.

    Raises:
        SpecError: it has none.
    """
    kind = container.process.kind
    if kind in _OURS:
        return _OURS[kind]
    if kind not in _ENGINES:
        what = f"{kind} tells no autoscaler how many requests it has; leave max_replicas out"
        raise wrong(f"engines.{container.name}.deploy.max_replicas", what)
    return ENGINES[_ENGINES[kind]][Seen.RUNNING][0][0].name


def _autoscaler(container: Container, name: str, labels: dict[str, str]) -> dict[str, Any]:
    """By requests at once: the CPU of an engine that waits for its GPU says nothing."""
    metric = _busy(container).replace(":", "_")
    value = {"type": "AverageValue", "averageValue": str(container.deploy.target_requests)}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": container.deploy.min_replicas,
        "maxReplicas": container.deploy.most_replicas,
        "metrics": [{"type": "Pods", "pods": {"metric": {"name": metric}, "target": value}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": min(3600, whole(container.deploy.idle_s))}},
    }
    return {**_head("autoscaling/v2", "HorizontalPodAutoscaler", name, labels), "spec": spec}


def _inference(stack: str, gateway: str, engines: list[Container]) -> list[dict[str, Any]]:
    """Each engine's pods as a pool, whose picker chooses the pod; its chart is installed as ``NAME-epp``."""
    found: list[dict[str, Any]] = []
    for engine in engines:
        name, labels = f"{stack}-{engine.name}", labels_of(engine.name, stack)
        pool = {
            "selector": {"matchLabels": labels},
            "targetPorts": [{"number": engine.process.port}],
            "endpointPickerRef": {"name": f"{name}-epp", "port": {"number": 9002}, "failureMode": "FailOpen"},
        }
        found.append({**_head("inference.networking.k8s.io/v1", "InferencePool", name, labels), "spec": pool})
        backend = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": name}
        prefix = "/" if len(engines) == 1 else f"/{engine.name}/"
        rule: dict[str, Any] = {
            "matches": [{"path": {"type": "PathPrefix", "value": prefix}}],
            "backendRefs": [backend],
            "timeouts": {"request": "0s"},  # a stream ends when it ends
        }
        if prefix != "/":
            rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
            rule["filters"] = [{"type": "URLRewrite", "urlRewrite": rewrite}]
        route = {"parentRefs": [{"name": gateway}], "rules": [rule]}
        found.append({**_head("gateway.networking.k8s.io/v1", "HTTPRoute", name, labels), "spec": route})
    return found


def _told(stack: str, entry: str, all_of_them: tuple[Container, ...], pools: list[str]) -> list[str]:
    """What must be there before, in the order in which it is made."""
    lines = [f"The door is the Service {_address(entry, stack)}. Before `kubectl apply -f kubernetes.yaml`:"]
    if any(each.image == OURS for each in all_of_them):
        lines.append(f"- the image {OURS} where the cluster finds it: {build()} (CLONE is withstand's)")
    keys = [key for each in all_of_them for key in each.secrets.values()]
    files = [each.keys_file for each in all_of_them if each.keys_file]
    lines += kept(stack, keys, [path for each in all_of_them for path in each.volumes], files)
    for gpu in sorted({each.deploy.gpu for each in all_of_them if each.deploy.gpu}):
        labels = " or ".join(products(gpu))
        lines.append(
            f"- nodes labelled {LABEL}={labels} (`kubectl get nodes -L {LABEL}` shows yours; {gpu} was asked for)"
        )
    if any(each.process.metrics for each in all_of_them):
        lines.append("- the CRDs of prometheus-operator, for the PodMonitors; without it, leave those out")
    if scaled := sorted({_busy(each) for each in all_of_them if _scales(each)}):
        lines.append(f"- prometheus-adapter, with a rule for the autoscalers' metrics, `:` as `_`: {', '.join(scaled)}")
    if pools:
        names = ", ".join(f"{pool}-epp" for pool in pools)
        lines.append(f"- the CRDs of Gateway API and its inference extension, and an endpoint picker a pool: {names}")
    if alone := [each.name for each in all_of_them if each.deploy.gpus and each.deploy.min_replicas == 1]:
        lines.append(
            f"A rollout needs no spare GPU: a replica ends before its follower starts, so {', '.join(alone)} with one"
            " replica is away meanwhile. Where GPUs are free, take maxSurge 1 and maxUnavailable 0."
        )
    lines.append(
        "An engine's pod that is to end waits for its longest answer (deploy.longest_stream_s), also where it has none."
    )
    return lines
