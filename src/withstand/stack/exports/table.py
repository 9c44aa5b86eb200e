"""Where a stack can be exported to."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from withstand.errors import UsageError
from withstand.spec.stack import Stack
from withstand.stack.exports.compose import compose
from withstand.stack.exports.kuberay import kuberay
from withstand.stack.exports.kubernetes import kubernetes
from withstand.stack.exports.modal import modal
from withstand.stack.exports.ray_serve import ray_serve

PLACES: Final[Mapping[str, Callable[[Stack], dict[str, str]]]] = {
    "compose": compose,
    "kubernetes": kubernetes,
    "ray": ray_serve,
    "kuberay": kuberay,
    "modal": modal,
}


def exported(stack: Stack, place: str, inference_gateway: str | None = None) -> dict[str, str]:
    """File → text, for one of ``PLACES``.

    Raises:
        SpecError: the place cannot run it as it is described.
        UsageError: the place has no inference gateway.
    """
    # What starts it here is of no matter there; copies of the gateway are replicas, and its edge is the place's own.
    one = stack.gateway and msgspec.structs.replace(stack.gateway, copies=1)
    stack = msgspec.structs.replace(stack, runner="local", gateway=one, edge=None, monitoring=None)
    if inference_gateway is None:
        return PLACES[place](stack)
    if place != "kubernetes":
        raise UsageError("--inference-gateway is a Gateway of Kubernetes; leave it out, or take --to kubernetes.")
    return kubernetes(stack, inference_gateway)


def left_out(stack: Stack, place: str) -> list[str]:
    """Parts of the stack that the place does not get: it has others of its own, or runs engines alone."""
    there = {"gateway", "agent"} if place in {"compose", "kubernetes"} else set()
    return [part for part, _ in stack.besides() if part not in there]
