"""Stack → Blueprint: which processes there are, and how they know of each other. Pure: ports and models come in."""

from typing import Any

import msgspec

from withstand import plugins
from withstand.spec.stack import Agent, Engine, Gateway, Stack
from withstand.spec.targets import laid_over_tree
from withstand.stack.blueprint import Blueprint, Place, Process, in_order, upkeep_of
from withstand.stack.engines.kind import Kind
from withstand.stack.ports import HOST

GATEWAY, AGENT = "gateway", "agent"


def composed(stack: Stack, place: Place) -> Blueprint:
    """All processes.

    Raises:
        SpecError: a kind cannot do what is wanted of it.
        UsageError: a kind is unknown.
    """
    models = {name: _kind(name, told).model(told, place) for name, told in stack.engines.items()}
    started = {name: _kind(name, told).process(name, told, place) for name, told in stack.engines.items()}
    processes = [process for process in started.values() if process]
    urls = {name: process.base_url if process else _url(stack.engines[name]) for name, process in started.items()}
    first = next(iter(urls))
    door = urls[first]
    if stack.gateway:
        gateway = _gateway(stack.gateway, place, [p.name for p in processes], _seats(stack, urls, models))
        processes.append(gateway)
        door = gateway.base_url
    model = models[first]
    if stack.agent:
        agent = _agent(stack, place, door, model)
        processes.append(agent)
        door, model = agent.base_url, str(stack.agent.config.get("name", AGENT))
    return Blueprint(made_of=stack, processes=in_order(processes), door=door, model=model)


def _url(told: Engine) -> str:
    assert told.url
    return told.url.rstrip("/").removesuffix("/v1")


def service_names(stack: Stack) -> list[str]:
    """Of all that listens on a port."""
    started = [name for name, told in stack.engines.items() if told.kind != "remote"]
    return [*started, *([GATEWAY] if stack.gateway else []), *([AGENT] if stack.agent else [])]


def wants_small_model(stack: Stack) -> bool:
    """Whether the model that comes along is served by somebody."""
    return any(engine.model is None and engine.kind == "llamacpp" for engine in stack.engines.values())


def _kind(name: str, told: Engine) -> Kind:
    kind: Kind = plugins.load("engines", told.kind, f"engines.{name}.kind")
    return kind


def _seats(stack: Stack, urls: dict[str, str], models: dict[str, str]) -> dict[str, Any]:
    """Engines by the model that they serve, as the gateway wants them told."""
    seats: dict[str, Any] = {}
    for name, told in stack.engines.items():
        key = told.api_key
        seat = {"url": urls[name], "api_key_env": key and key.from_env, "api_key_file": key and key.from_file}
        model = seats.setdefault(models[name], {"engines": []})
        model["engines"].append({field: value for field, value in seat.items() if value is not None})
    return seats


def _gateway(told: Gateway, place: Place, needs: list[str], seats: dict[str, Any]) -> Process:
    config = {"listen": f"{HOST}:{place.ports[GATEWAY]}", "models": seats}
    return _ours(GATEWAY, told, place, needs, config)


def _agent(stack: Stack, place: Place, door: str, model: str) -> Process:
    """It asks the gateway, or else the first engine. The small model's template knows no tools: a schema helps."""
    assert stack.agent
    name, first = next(iter(stack.engines.items()))
    needs = [GATEWAY] if stack.gateway else [name] if first.kind != "remote" else []
    asked: dict[str, Any] = {"base_url": door, "name": model}
    if first.kind == "llamacpp" and first.model is None:
        asked["way"] = "schema"
    if first.api_key and not stack.gateway:
        keys = {"api_key_env": first.api_key.from_env, "api_key_file": first.api_key.from_file}
        asked |= {field: value for field, value in keys.items() if value is not None}
    config = {"listen": f"{HOST}:{place.ports[AGENT]}", "model": asked}
    return _ours(AGENT, stack.agent, place, needs, config)


def _ours(name: str, told: Gateway | Agent, place: Place, needs: list[str], config: dict[str, Any]) -> Process:
    """A program of ours, with the configuration that is written for it and what the user lays over that."""
    file = f"{name}.json"
    laid = laid_over_tree(config, told.config)
    return Process(
        name=name,
        kind=name,
        argv=(place.python, "-P", "-m", f"withstand.{name}", str(place.folder / file)),
        env=told.env,
        port=place.ports[name],
        metrics="/metrics",
        needs=tuple(needs),
        files={file: msgspec.json.format(msgspec.json.encode(laid), indent=2).decode() + "\n"},
        upkeep=upkeep_of(told),
    )
