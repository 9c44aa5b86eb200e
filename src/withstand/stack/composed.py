"""Stack → Blueprint: which processes there are, and how they know of each other. Pure: ports and models come in."""

from typing import Any

import msgspec

from withstand import plugins
from withstand.spec.stack import Engine, Gateway, Stack
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
    return Blueprint(made_of=stack, processes=in_order(processes), door=door, model=models[first])


def _url(told: Engine) -> str:
    assert told.url
    return told.url.rstrip("/").removesuffix("/v1")


def service_names(stack: Stack) -> list[str]:
    """Of all that listens on a port."""
    started = [name for name, told in stack.engines.items() if told.kind != "remote"]
    return [*started, *([GATEWAY] if stack.gateway else [])]


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
    port = place.ports[GATEWAY]
    config = laid_over_tree({"listen": f"{HOST}:{port}", "models": seats}, told.config)
    return Process(
        name=GATEWAY,
        kind=GATEWAY,
        argv=(place.python, "-P", "-m", "withstand.gateway", str(place.folder / _CONFIG)),
        env=told.env,
        port=port,
        metrics="/metrics",
        needs=tuple(needs),
        files={_CONFIG: msgspec.json.format(msgspec.json.encode(config), indent=2).decode() + "\n"},
        upkeep=upkeep_of(told),
    )
