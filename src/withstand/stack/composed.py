"""Stack → Blueprint: which processes there are, and how they know of each other. Pure: ports and models come in."""

from typing import Any

import msgspec

from withstand import plugins
from withstand.spec.stack import Engine, Stack
from withstand.spec.targets import laid_over_tree
from withstand.stack.blueprint import Blueprint, Place, Process, in_order, upkeep_of
from withstand.stack.engines.kind import Kind
from withstand.stack.ports import HOST

GATEWAY = "gateway"
_CONFIG = "gateway.json"


def composed(stack: Stack, place: Place) -> Blueprint:
    """All processes.

    Raises:
        SpecError: a kind cannot do what is wanted of it.
        UsageError: a kind is unknown.
    """
    engines = {name: _kind(name, told).process(name, told, place) for name, told in stack.engines.items()}
    models = {name: _kind(name, told).model(told, place) for name, told in stack.engines.items()}
    processes = list(engines.values())
    if stack.gateway:
        processes.append(_gateway(stack, place, engines, models))
    first = next(iter(engines))
    door = processes[-1] if stack.gateway else engines[first]
    return Blueprint(name=stack.name, processes=in_order(processes), door=door.base_url, model=models[first])


def service_names(stack: Stack) -> list[str]:
    """Of all that listens on a port."""
    return [*stack.engines, *([GATEWAY] if stack.gateway else [])]


def wants_small_model(stack: Stack) -> bool:
    """Whether the model that comes along is served by somebody."""
    return any(engine.model is None and engine.kind == "llamacpp" for engine in stack.engines.values())


def _kind(name: str, told: Engine) -> Kind:
    kind: Kind = plugins.load("engines", told.kind, f"engines.{name}.kind")
    return kind


def _gateway(stack: Stack, place: Place, engines: dict[str, Process], models: dict[str, str]) -> Process:
    assert stack.gateway
    written: dict[str, Any] = {"listen": f"{HOST}:{place.ports[GATEWAY]}", "models": {}}
    for name, process in engines.items():
        model = written["models"].setdefault(models[name], {"engines": []})
        model["engines"].append({"url": process.base_url})
    config = laid_over_tree(written, stack.gateway.config)
    return Process(
        name=GATEWAY,
        kind=GATEWAY,
        argv=(place.python, "-P", "-m", "withstand.gateway", str(place.folder / _CONFIG)),
        env=stack.gateway.env,
        port=place.ports[GATEWAY],
        metrics="/metrics",
        needs=tuple(engines),
        files={_CONFIG: msgspec.json.format(msgspec.json.encode(config), indent=2).decode() + "\n"},
        upkeep=upkeep_of(stack.gateway),
    )
