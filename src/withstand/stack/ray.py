"""All engines of a stack as one process that runs them on Ray Serve, and ends with them. Pure."""

import hashlib
from pathlib import Path
from typing import Any, Final

import msgspec

from withstand.errors import SpecError
from withstand.spec.stack import Stack
from withstand.stack.blueprint import Place, Process, Upkeep
from withstand.stack.engines.kind import folder_of, model_name
from withstand.stack.exports.ray_serve import application, on_ray
from withstand.stack.ports import HOST

RAY: Final = "ray"
RAY_READY: Final = "ray-ready"
"""Where models are asked, and whether all of them are there."""
_CONFIG = "ray.json"
_PROGRAM = Path(__file__).parent / "foreign" / "ray_program.py"
_ENV = {"RAY_USAGE_STATS_ENABLED": "0", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
_SHUTDOWN_S = 30.0
"""What Ray itself takes to end."""


def ray_process(stack: Stack, place: Place) -> Process:
    """The program runs in Ray's own environment, where there is no withstand: it is one file, told by another.

    Raises:
        SpecError: an engine cannot run on Ray as it is described.
    """
    python = stack.ray.python
    if not python:
        raise SpecError("The stack is wrong: Ray runs in an environment of its own - at `$.ray.python`; give it.")
    stack = _with_small_model(stack, place)
    engines = [stack.engines[name] for name in on_ray(stack)]
    port = place.ports[RAY]
    folder = f"/tmp/wsr-{hashlib.sha256(str(place.folder).encode()).hexdigest()[:16]}"  # noqa: S108  made with 0700
    config: dict[str, Any] = {
        "address": stack.ray.address,
        "host": HOST,
        "port": port,
        "ready_port": place.ports[RAY_READY],
        "folder": folder,
        "application": application(stack),
    }
    return Process(
        name=RAY,
        kind=RAY,
        argv=(python, str(_PROGRAM), str(place.folder / _CONFIG)),
        env={**_ENV, **{name: value for engine in engines for name, value in engine.env.items()}},
        port=port,
        health=f"http://{HOST}:{place.ports[RAY_READY]}/",
        files={_CONFIG: msgspec.json.format(msgspec.json.encode(config), indent=2).decode() + "\n"},
        scratch=(folder,) if stack.ray.address == "local" else (),
        reason=r"(?:ERROR|Error).*?((?:[A-Z]\w+Error|error): .+)",
        upkeep=Upkeep(
            restart=any(engine.restart for engine in engines),
            ready_s=max(engine.ready_s for engine in engines),
            stop_s=max(engine.stop_s for engine in engines) + _SHUTDOWN_S,
        ),
    )


def _with_small_model(stack: Stack, place: Place) -> Stack:
    """Where vLLM is told no model it runs the small one, as it does without Ray."""
    told = {
        name: msgspec.structs.replace(engine, model=folder_of(name, engine, place), served_as=model_name(engine, place))
        if engine.kind == "vllm" and engine.model is None and place.small_folder
        else engine
        for name, engine in stack.engines.items()
    }
    return msgspec.structs.replace(stack, engines=told)
