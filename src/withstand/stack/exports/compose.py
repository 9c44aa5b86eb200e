"""A stack as Docker Compose runs it. Pure."""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from withstand.spec.stack import Stack
from withstand.stack.composed import GATEWAY
from withstand.stack.exports.carried import KEYS, STATE
from withstand.stack.exports.container import CONFIG, OURS, Container, containers, dockerfile, door, refuse_own_address
from withstand.stack.exports.secrets import variable_of
from withstand.stack.exports.yaml import document, whole


def compose(stack: Stack) -> dict[str, str]:
    """``compose.yaml``, and what its containers read. Secrets come from the environment of whoever brings it up.

    Raises:
        SpecError: a service cannot run elsewhere as it is described.
    """
    entry, all_of_them = door(stack), containers(stack)
    refuse_own_address(all_of_them, "compose")
    services = {each.name: _service(each, is_open=is_open(each.name, entry)) for each in all_of_them}
    files = {f"{each.name}/{path}": text for each in all_of_them for path, text in each.files.items()}
    whole_file = {"name": stack.name, "services": services, **_kept(all_of_them)}
    written = {"compose.yaml": document(whole_file)}
    return written | files | dockerfile(all_of_them)


def _kept(all_of_them: Iterable[Container]) -> dict[str, Any]:
    """Files that are mounted, and volumes for what is written."""
    secrets = {f"{each.name}-keys": {"file": _literal(each.keys_file)} for each in all_of_them if each.keys_file}
    volumes: dict[str, Any] = {f"{each.name}-state": {} for each in all_of_them if each.writes}
    return {key: value for key, value in (("secrets", secrets), ("volumes", volumes)) if value}


def is_open(name: str, entry: str) -> bool:
    """Whether it has a port of the machine: the door, and behind it the gateway, whose models are asked too."""
    return name in {entry, GATEWAY}


def unlike(stack: Stack) -> dict[str, str]:
    """What Compose has no word for → what there is instead."""
    found, entry = dict[str, str](), door(stack)
    for each in containers(stack):
        deploy, least = each.deploy, max(1, each.deploy.min_replicas)
        if deploy.gpu:
            found[f"the type of {each.name}'s GPUs ({deploy.gpu})"] = "compose takes any that the machine has"
        if is_open(each.name, entry) and deploy.most_replicas > 1:
            found[f"replicas of {each.name}"] = "one runs, for the port is one's"
        elif deploy.most_replicas > least:
            how = f"docker compose up --scale {each.name}=N"
            found[f"max_replicas of {each.name}"] = f"compose has no autoscaling; {least} run, more with `{how}`"
    return found


def _service(container: Container, *, is_open: bool) -> dict[str, Any]:
    process, upkeep = container.process, container.process.upkeep
    service: dict[str, Any] = {"image": _literal(container.image)}
    if container.image == OURS:
        service["build"] = "."
    secrets = {variable: f"${{{variable_of(key)}:?}}" for variable, key in container.secrets.items()}
    service |= {
        "entrypoint": _literal(container.argv),
        "environment": _literal(container.env) | secrets,
        "healthcheck": _literal(_health(container)),
        "stop_grace_period": f"{whole(container.end_s)}s",
        "restart": "unless-stopped" if upkeep.restart else "no",
        "init": True,
    }
    if process.needs:
        service["depends_on"] = {name: {"condition": "service_healthy"} for name in process.needs}
    if is_open:
        service["ports"] = [f"127.0.0.1:{process.port}:{process.port}"]
    if volumes := _volumes(container):
        service["volumes"] = _literal(volumes)
    if container.keys_file:
        target = str(KEYS / PurePosixPath(container.keys_file).name)
        service["secrets"] = [{"source": f"{container.name}-keys", "target": _literal(target)}]
    if container.deploy.min_replicas > 1 and not is_open:  # a port of this machine is one's
        service["scale"] = container.deploy.min_replicas
    return service | _room(container)


def _literal(tree: Any) -> Any:
    """A Compose file reads `$` as its own."""
    if isinstance(tree, dict):
        return {key: _literal(each) for key, each in tree.items()}
    if isinstance(tree, list | tuple):
        return [_literal(each) for each in tree]
    return tree.replace("$", "$$") if isinstance(tree, str) else tree


def _volumes(container: Container) -> list[dict[str, Any]]:
    """The short form of one is cut at each colon."""
    read = {path: path for path in container.volumes}
    read |= {f"./{container.name}/{path}": str(CONFIG / path) for path in container.files}
    volumes = [{"type": "bind", "source": at, "target": there, "read_only": True} for at, there in read.items()]
    kept = {"type": "volume", "source": f"{container.name}-state", "target": str(STATE)}
    return [*volumes, kept] if container.writes else volumes


def _health(container: Container) -> dict[str, Any]:
    url = f"http://127.0.0.1:{container.process.port}{container.process.health}"
    python = "python" if container.image == OURS else "python3"
    ask = f"import urllib.request as r; r.urlopen({url!r}, timeout=4)"
    ready = whole(container.process.upkeep.ready_s)
    return {
        "test": ["CMD", python, "-c", ask],
        "interval": "10s",
        "timeout": "5s",
        "retries": 6,
        "start_period": f"{ready}s",
        "start_interval": "1s",
    }


def _room(container: Container) -> dict[str, Any]:
    room, told = container.process.upkeep.room, dict[str, Any]()
    if room.cpus:
        told["cpuset"] = ",".join(map(str, room.cpus))
    if room.memory_gb:
        told["mem_limit"] = str(int(room.memory_gb * 1e9))
    if container.deploy.gpus:
        device = {"driver": "nvidia", "count": container.deploy.gpus, "capabilities": ["gpu"]}
        told["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
        told["ipc"] = "host"  # tensor parallelism talks over shared memory, and 64 MB are too little
    return told
