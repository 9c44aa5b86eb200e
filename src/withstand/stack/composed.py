"""Stack → Blueprint: which processes there are, and how they know of each other. Pure: ports and models come in."""

from collections.abc import Mapping
from typing import Any

import msgspec

from withstand import plugins
from withstand.errors import SpecError
from withstand.spec.stack import Engine, Gateway, Served, Stack
from withstand.spec.targets import laid_over_tree
from withstand.stack.blueprint import Blueprint, Place, Process, in_order, upkeep_of
from withstand.stack.edge import EDGE, EDGE_STATUS, NGINX, edge
from withstand.stack.engines.kind import Kind
from withstand.stack.monitoring import BENCH, EDGE_COUNTS, EXPORTERS, MACHINE, MONITORING, PROMETHEUS, monitoring
from withstand.stack.ports import HOST

GATEWAY = "gateway"


def composed(stack: Stack, place: Place) -> Blueprint:
    """All processes.

    Raises:
        SpecError: a kind cannot do what is wanted of it.
        UsageError: a kind is unknown.
    """
    _check_names(stack)
    models = {name: _kind(name, told).model(told, place) for name, told in stack.engines.items()}
    started = {name: _kind(name, told).process(name, told, place) for name, told in stack.engines.items()}
    processes = [process for process in started.values() if process]
    urls = {name: process.base_url if process else _url(stack.engines[name]) for name, process in started.items()}
    first = next(iter(urls))
    doors, needs = [urls[first]], [p.name for p in processes]
    if stack.gateway:
        gateways = _gateways(stack.gateway, place, needs, _seats(stack, urls, models))
        processes += gateways
        doors, needs = [p.base_url for p in gateways], [p.name for p in gateways]
    if stack.edge:
        processes.append(edge(stack.edge, place, tuple(needs), tuple(doors)))
        doors = [processes[-1].base_url]
    if stack.monitoring:
        processes += monitoring(stack.monitoring, place, processes, stack.name)
    return Blueprint(made_of=stack, processes=in_order(processes), door=doors[0], model=models[first])


def _url(told: Engine) -> str:
    assert told.url
    return told.url.rstrip("/").removesuffix("/v1")


def service_names(stack: Stack) -> list[str]:
    """Of all that listens on a port."""
    started = [name for name, told in stack.engines.items() if told.kind != "remote"]
    gateways = _gateway_names(stack.gateway.copies) if stack.gateway else []
    edges = [EDGE, EDGE_STATUS] if stack.edge else []
    watchers = [MONITORING, BENCH, MACHINE, EDGE_COUNTS] if stack.monitoring else []
    return [*started, *gateways, *edges, *watchers]


def _check_names(stack: Stack) -> None:
    names = service_names(stack)
    for name in stack.engines:
        if names.count(name) > 1:
            raise SpecError(f"The stack is wrong: another of its services has that name - at `$.engines.{name}`.")


def told_of(stack: Stack, name: str) -> Served | None:
    """The description of what listens there; None = it is a port besides."""
    besides: dict[str, Served] = dict(stack.besides())
    return stack.engines.get(name) or besides.get(name)


def programs_of(stack: Stack) -> dict[str, tuple[str, ...]]:
    """What must be installed besides: name → how it may be called, the likeliest first."""
    wanted: dict[str, tuple[str, ...]] = {}
    if stack.edge:
        wanted[NGINX] = (stack.edge.program or NGINX,)
    if stack.monitoring:
        wanted[PROMETHEUS] = (stack.monitoring.program or PROMETHEUS,)
    return wanted


def welcome_programs_of(stack: Stack) -> Mapping[str, tuple[str, ...]]:
    """What is used where it is installed."""
    return EXPORTERS if stack.monitoring else {}


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


def _gateway_names(copies: int) -> list[str]:
    return [GATEWAY, *(f"{GATEWAY}-{i}" for i in range(2, copies + 1))]


def _gateways(told: Gateway, place: Place, needs: list[str], seats: dict[str, Any]) -> list[Process]:
    return [_gateway(name, told, place, needs, seats) for name in _gateway_names(told.copies)]


def _gateway(name: str, told: Gateway, place: Place, needs: list[str], seats: dict[str, Any]) -> Process:
    port, file = place.ports[name], f"{name}.json"
    config = laid_over_tree({"listen": f"{HOST}:{port}", "models": seats}, told.config)
    return Process(
        name=name,
        kind=GATEWAY,
        argv=(place.python, "-P", "-m", "withstand.gateway", str(place.folder / file)),
        env=told.env,
        port=port,
        metrics="/metrics",
        needs=tuple(needs),
        files={file: msgspec.json.format(msgspec.json.encode(config), indent=2).decode() + "\n"},
        upkeep=upkeep_of(told),
    )
