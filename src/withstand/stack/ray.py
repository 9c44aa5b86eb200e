"""All engines of a stack as one process that runs them on Ray Serve, and ends with them. Pure."""

import hashlib
import re
from pathlib import Path
from typing import Any, Final

import msgspec

from withstand.spec.mistake import wrong
from withstand.spec.stack import Secret, Stack
from withstand.stack.blueprint import Place, Process, Undo, Upkeep
from withstand.stack.engines.kind import folder_of, model_name
from withstand.stack.exports.ray_serve import application, model_id, on_ray
from withstand.stack.ports import HOST

RAY: Final = "ray"
RAY_READY: Final = "ray-ready"
"""Where models are asked, and whether all of them are there."""
_CONFIG = "ray.json"
_PROGRAM = Path(__file__).parent / "foreign" / "ray_program.py"
_TRACE = "on-ray"
"""A file that is there while an application of ours is on somebody's cluster."""
_ENV = {"RAY_USAGE_STATS_ENABLED": "0", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
_OFTEN = {"RAY_metrics_report_interval_ms": "1000"}
"""Replicas tell their figures each second; by itself every ten."""
_ADDRESS: Final = re.compile(r"local|auto|[^\s:/]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")
_SHUTDOWN_S = 30.0
"""What Ray itself takes to end."""


def ray_process(stack: Stack, place: Place) -> Process:
    """The program runs in Ray's own environment, where there is no withstand: it is one file, told by another.

    Raises:
        SpecError: an engine cannot run on Ray as it is described.
    """
    python = stack.ray.python
    if not python:
        raise wrong("ray.python", "Ray runs in an environment of its own; give its interpreter")
    own = stack.ray.address == "local"
    if own and stack.ray.token:
        raise wrong("ray.token", "a Ray of the stack's own makes its token itself; leave it out")
    if not _ADDRESS.fullmatch(stack.ray.address):
        raise wrong("ray.address", f"{stack.ray.address!r} is none; give HOST:PORT of a cluster, auto, or local")
    stack = _with_small_model(stack, place)
    engines = [stack.engines[name] for name in on_ray(stack)]
    port, told = place.ports[RAY], application(stack, place.side_ports if own else {})
    folder = f"/tmp/wsr-{hashlib.sha256(str(place.folder).encode()).hexdigest()[:16]}"  # noqa: S108  made with 0700
    config: dict[str, Any] = {
        "address": stack.ray.address,
        "host": HOST,
        "port": port,
        "ready_port": place.ports[RAY_READY],
        "folder": folder,
        "trace": str(place.folder / _TRACE),
        "grace_s": max(engine.stop_s for engine in engines),
        "application": told,
        "models": list(dict.fromkeys(model_id(engine) for engine in engines)),
    }
    argv = (python, str(_PROGRAM), str(place.folder / _CONFIG))
    ready = f"http://{HOST}:{place.ports[RAY_READY]}"
    return Process(
        name=RAY,
        kind=RAY,
        argv=argv,
        env={**_env_of(stack), **{name: value for engine in engines for name, value in engine.env.items()}},
        port=port,
        health=f"{ready}/",
        metrics=f"{ready}/metrics",
        files={_CONFIG: msgspec.json.format(msgspec.json.encode(config), indent=2).decode() + "\n"},
        scratch=(folder,) if own else (),
        undo=None if own else Undo(argv=(*argv, "--undo"), trace=_TRACE),
        reason=r"(?:ERROR|Error).*?((?:[A-Z]\w+Error|error): .+)",
        upkeep=Upkeep(
            restart=any(engine.restart for engine in engines),
            ready_s=max(engine.ready_s for engine in engines),
            stop_s=max(engine.stop_s for engine in engines) + _SHUTDOWN_S,
        ),
    )


def _env_of(stack: Stack) -> dict[str, str | Secret]:
    if stack.ray.address == "local":
        return {**_ENV, **_OFTEN}
    return {**_ENV, "RAY_AUTH_TOKEN": stack.ray.token} if stack.ray.token else {**_ENV}


def _with_small_model(stack: Stack, place: Place) -> Stack:
    """Where vLLM is told no model it runs the small one, as it does without Ray."""
    told = {
        name: msgspec.structs.replace(engine, model=folder_of(name, engine, place), served_as=model_name(engine, place))
        if engine.kind == "vllm" and engine.model is None and place.small_folder
        else engine
        for name, engine in stack.engines.items()
    }
    return msgspec.structs.replace(stack, engines=told)
