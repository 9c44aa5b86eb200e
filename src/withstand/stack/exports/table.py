"""Where a stack can be exported to."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from withstand.errors import UsageError
from withstand.spec.stack import Engine, Gateway, Stack
from withstand.stack.engines.llamacpp import SEQUENCES
from withstand.stack.exports.carried import check_carried, config_secrets, wanted
from withstand.stack.exports.compose import compose, unlike
from withstand.stack.exports.kuberay import kuberay
from withstand.stack.exports.kubernetes import kubernetes
from withstand.stack.exports.modal import modal
from withstand.stack.exports.ray_serve import ray_serve, unfit_for_ray, wanted_of_nodes
from withstand.stack.exports.secrets import check_secrets
from withstand.stack.exports.told import README, not_there, readme

PLACES: Final[Mapping[str, Callable[[Stack], dict[str, str]]]] = {
    "compose": compose,
    "kubernetes": kubernetes,
    "ray": ray_serve,
    "kuberay": kuberay,
    "modal": modal,
}
_WITH_GATEWAY: Final = frozenset({"compose", "kubernetes"})
"""And with the agent; elsewhere there are engines alone."""


def exported(stack: Stack, place: str, inference_gateway: str | None = None) -> dict[str, str]:
    """File → text, for one of ``PLACES``.

    Raises:
        SpecError: the place cannot run it as it is described.
        UsageError: the place has no inference gateway.
    """
    check_secrets(stack, config_secrets(stack))
    if place in _WITH_GATEWAY:
        check_carried(stack)
    if inference_gateway is None:
        files = PLACES[place](_elsewhere(stack))
    elif place == "kubernetes":
        files = kubernetes(_elsewhere(stack), inference_gateway)
    else:
        raise UsageError("--inference-gateway is a Gateway of Kubernetes; leave it out, or take --to kubernetes.")
    told = f"The stack {stack.name} for {place}: {', '.join(name for name in files if name != README)}."
    said = [told, *files.get(README, "").splitlines(), *not_there(place, left_out(stack, place))]
    return files | readme(said)


def _elsewhere(stack: Stack) -> Stack:
    """What starts it here is of no matter there, and the edge is the place's own."""
    gateway = stack.gateway and _as_replicas(stack.gateway)
    engines = {name: _as_it_deploys(told) for name, told in stack.engines.items()}
    return msgspec.structs.replace(stack, runner="local", gateway=gateway, engines=engines, edge=None, monitoring=None)


def _as_it_deploys(engine: Engine) -> Engine:
    """Who names a type of GPU wants one; and no replica is meant for more requests than it works on at once."""
    deploy = engine.deploy
    gpus = deploy.gpus or int(deploy.gpu is not None)
    most = engine.max_sequences or (SEQUENCES if engine.kind == "llamacpp" else deploy.target_requests)
    target = min(deploy.target_requests, most)
    return msgspec.structs.replace(engine, deploy=msgspec.structs.replace(deploy, gpus=gpus, target_requests=target))


def _as_replicas(gateway: Gateway) -> Gateway:
    """One, of which there are as many as there would be copies here."""
    least, most = max(gateway.copies, gateway.deploy.min_replicas), gateway.deploy.max_replicas
    most = most if most is None else max(least, most)
    deploy = msgspec.structs.replace(gateway.deploy, min_replicas=least, max_replicas=most)
    return msgspec.structs.replace(gateway, copies=1, deploy=deploy)


_GPU_KINDS: Final = frozenset({"vllm", "sglang", "tgi", "trtllm"})


def without_gpu(stack: Stack) -> list[str]:
    """A sentence for each engine that is made for a GPU and has none there, as where that was only not said."""
    return [
        f"engines.{name}: {told.kind} gets no GPU there and has to compute on the CPU, which its image must be made "
        "for; say deploy.gpus = 1 if that is not meant."
        for name, told in _elsewhere(stack).engines.items()
        if told.kind in _GPU_KINDS and not told.deploy.gpus
    ]


_INSTEAD: Final[Mapping[str, str]] = {
    "edge": "use the place's own ingress, without buffering and with long timeouts",
    "monitoring": "have a Prometheus of the place scrape /metrics of the services",
}
_BESIDE: Final = "run it where it reaches the engines (withstand {part} FILE), or export it to compose or kubernetes"


def left_out(stack: Stack, place: str) -> dict[str, str]:
    """Parts of the stack that the place does not get → what to do instead."""
    there = {"gateway", "agent"} if place in _WITH_GATEWAY else set()
    left = [part for part, _ in stack.besides() if part not in there]
    found = {part: _INSTEAD.get(part, _BESIDE.format(part=part)) for part in left}
    remote = [name for name, told in stack.engines.items() if told.kind == "remote" and "gateway" not in there]
    found |= dict.fromkeys(remote, "ask it at its own address")
    found |= wanted(stack, place) if there else {}
    found |= unfit_for_ray(stack) if place in {"ray", "kuberay"} else {}
    unlike_here = {"ray": wanted_of_nodes, "compose": unlike}.get(place)
    return found | (unlike_here(_elsewhere(stack)) if unlike_here else {})
