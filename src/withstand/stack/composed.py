"""Stack → Blueprint: which processes there are, and how they know of each other. Pure: ports and models come in."""

from collections.abc import Mapping
from typing import Any

import msgspec

from withstand import plugins
from withstand.hints import meant
from withstand.programs import command_of
from withstand.spec.mistake import wrong
from withstand.spec.stack import Agent, Engine, Gateway, Served, Stack
from withstand.spec.targets import laid_over_tree
from withstand.stack.blueprint import Blueprint, Place, Process, in_order, upkeep_of
from withstand.stack.edge import EDGE, EDGE_STATUS, NGINX, edge
from withstand.stack.engines.kind import Kind, Small
from withstand.stack.exports.ray_serve import on_ray
from withstand.stack.monitoring import BENCH, EDGE_COUNTS, EXPORTERS, MACHINE, MONITORING, PROMETHEUS, monitoring
from withstand.stack.nginx import AGENT_PATH
from withstand.stack.ports import HOST
from withstand.stack.ray import RAY, RAY_READY, ray_process

GATEWAY, AGENT, SUPERVISOR = "gateway", "agent", "supervisor"
_LOOKS = {"every_s": 0.5, "timeout_s": 5, "unhealthy": 3, "healthy": 1}


def composed(stack: Stack, place: Place) -> Blueprint:
    """All processes.

    Raises:
        SpecError: a kind is unknown, or cannot do what is wanted of it.
    """
    _check_names(stack)
    models = {name: _kind(name, told).model(told, place) for name, told in stack.engines.items()}
    started = _serving(_started(stack, place), models)
    processes = list({process.name: process for process in started.values() if process}.values())
    urls = {name: process.base_url if process else _url(stack.engines[name]) for name, process in started.items()}
    _check_roles(stack)
    first = next(iter(urls))
    doors, needs = [urls[first]], [p.name for p in processes]
    if stack.gateway:
        gateways = _gateways(stack.gateway, place, needs, _seats(stack, urls, models, started))
        processes += gateways
        doors, needs = [p.base_url for p in gateways], [p.name for p in gateways]
    model = models[first]
    if stack.agent:
        agent = _agent(stack, place, needs, doors[0], models)
        processes.append(agent)
        model = str(stack.agent.config.get("name", AGENT))
        if not (stack.edge and stack.gateway):
            doors, needs = [agent.base_url], [AGENT]
    if stack.edge:
        agents = [p for p in processes if p.name == AGENT and stack.gateway]
        needs = [*needs, *(p.name for p in agents)]
        processes.append(edge(stack.edge, place, tuple(needs), tuple(doors), tuple(p.base_url for p in agents)))
        doors = [processes[-1].base_url + AGENT_PATH * bool(agents)]
    if stack.monitoring:
        processes += monitoring(stack.monitoring, place, processes, stack.name)
    return Blueprint(made_of=stack, processes=in_order(processes), door=doors[0], model=model, models=models)


def _started(stack: Stack, place: Place) -> dict[str, Process | None]:
    """Engine → the process that it runs in; on Ray it is one for all."""
    if stack.runner == "ray":
        ray, there = ray_process(stack, place), on_ray(stack)
        return {name: ray if name in there else None for name in stack.engines}
    return {name: _kind(name, told).process(name, told, place) for name, told in stack.engines.items()}


def _serving(started: dict[str, Process | None], models: Mapping[str, str]) -> dict[str, Process | None]:
    """Each with the models that it serves, in the order of the file."""
    served: dict[str, dict[str, None]] = {}
    for name, process in started.items():
        if process:
            served.setdefault(process.name, {})[models[name]] = None
    return {
        name: process and msgspec.structs.replace(process, serves=tuple(served[process.name]))
        for name, process in started.items()
    }


def _url(told: Engine) -> str:
    assert told.url
    return told.url.rstrip("/").removesuffix("/v1")


def service_names(stack: Stack) -> list[str]:
    """Of all that listens on a port."""
    local = [name for name, told in stack.engines.items() if told.kind != "remote"]
    started = [RAY, RAY_READY] if stack.runner == "ray" else local
    gateways = _gateway_names(stack.gateway.copies) if stack.gateway else []
    edges = [EDGE, EDGE_STATUS] if stack.edge else []
    watchers = [MONITORING, BENCH, MACHINE, EDGE_COUNTS] if stack.monitoring else []
    agents = [AGENT] if stack.agent else []
    return [*started, *gateways, *agents, *edges, *watchers]


def _check_names(stack: Stack) -> None:
    names = service_names(stack)
    for name in stack.engines:
        if names.count(name) > 1 or name == SUPERVISOR:
            raise wrong(f"engines.{name}", "another of its services has that name")


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


def wanted_small(stack: Stack) -> set[Small]:
    """The forms in which the model that comes along is served by somebody."""
    wanted = {_kind(name, told).small for name, told in stack.engines.items() if told.model is None}
    return {form for form in wanted if form}


def _check_roles(stack: Stack) -> None:
    for name, told in stack.engines.items():
        if told.role and stack.gateway is None and stack.runner != "ray":
            raise wrong(f"engines.{name}.role", "prefill and decode come together in a gateway; add [gateway]")


def _kind(name: str, told: Engine) -> Kind:
    if told.kind not in (known := plugins.names("engines")):
        raise wrong(f"engines.{name}.kind", f"there is no kind {told.kind!r}{meant(told.kind, known)}")
    kind: Kind = plugins.load("engines", told.kind, f"engines.{name}.kind")
    return kind


def _seats(
    stack: Stack, urls: dict[str, str], models: dict[str, str], started: dict[str, Process | None]
) -> dict[str, Any]:
    """Engines by the model that they serve, as the gateway wants them told."""
    seats: dict[str, Any] = {}
    for name, told in stack.engines.items():
        key, process = told.api_key, started[name]
        role = None if process and process.kind == RAY else told.role  # which Ray brings together by itself
        seat = {
            "url": urls[name],
            "api_key_env": key and key.from_env,
            "api_key_file": key and key.from_file,
            "role": role,
            "bootstrap_port": process and process.bootstrap_port,
        }
        model, health = seats.setdefault(models[name], {"engines": []}), _health(process)
        given: dict[str, Any] = {field: value for field, value in seat.items() if value is not None}
        if health and not model["engines"]:
            model["health"] = health
        elif health != model.get("health"):
            given["health"] = health or False
        if given not in model["engines"]:  # Ray shares a model's requests out by itself, behind one address
            model["engines"].append(given)
        if role and process and process.disaggregation:
            model["disaggregation"] = {"style": process.disaggregation}
    return seats


def _health(process: Process | None) -> dict[str, Any] | None:
    """How the gateway looks whether an engine is well: a dead one is known within 1.5 s, one that hangs within 16 s.

    A slow one on busy cores may be late by seconds; should it be so thrice, others are asked first, nobody is refused.
    One that is not ours may not have the path; Ray minds its own, and a model of it rests only where nobody asks.
    """
    if process is None or process.kind == RAY or not process.health.startswith("/"):
        return None
    return {"path": process.health, **_LOOKS}


def _gateway_names(copies: int) -> list[str]:
    return [GATEWAY, *(f"{GATEWAY}-{i}" for i in range(2, copies + 1))]


def _gateways(told: Gateway, place: Place, needs: list[str], seats: dict[str, Any]) -> list[Process]:
    return [_ours(name, GATEWAY, told, place, needs, {"models": seats}) for name in _gateway_names(told.copies)]


def _agent(stack: Stack, place: Place, needs: list[str], door: str, models: Mapping[str, str]) -> Process:
    """It asks the gateway, or else the first engine. The small model's template knows no tools: a schema helps."""
    assert stack.agent
    first, model = next(iter(stack.engines.values())), next(iter(models.values()))
    asked: dict[str, Any] = {"base_url": door, "name": model}
    if _is_small(_thinks(stack, models)):
        asked["way"] = "schema"
    if first.api_key and not stack.gateway:
        keys = {"api_key_env": first.api_key.from_env, "api_key_file": first.api_key.from_file}
        asked |= {field: value for field, value in keys.items() if value is not None}
    return _ours(AGENT, AGENT, stack.agent, place, needs, {"model": asked})


def _thinks(stack: Stack, models: Mapping[str, str]) -> Engine | None:
    """The engine of the model that the agent's configuration names; None = none of the stack's has it."""
    told = stack.agent.config.get("model") if stack.agent else None
    if not isinstance(told, dict) or "name" not in told or not stack.gateway:  # without one, all go to the first
        return next(iter(stack.engines.values()))
    return next((stack.engines[engine] for engine, model in models.items() if model == told["name"]), None)


def _is_small(engine: Engine | None) -> bool:
    return engine is not None and engine.kind == "llamacpp" and engine.model is None


def _ours(
    name: str, kind: str, told: Gateway | Agent, place: Place, needs: list[str], config: dict[str, Any]
) -> Process:
    """A program of ours, with the configuration that is written for it and what the user lays over that.

    Raises:
        SpecError: it shall listen elsewhere than where it is asked.
    """
    if "listen" in told.config:
        raise wrong(f"{kind}.config.listen", "where it listens is the stack's to say; give `port` instead")
    file = f"{name}.json"
    laid = laid_over_tree({"listen": f"{HOST}:{place.ports[name]}", **config}, told.config)
    return Process(
        name=name,
        kind=kind,
        argv=(*command_of(kind, place.python), str(place.folder / file)),
        env=told.env,
        port=place.ports[name],
        metrics="/metrics",
        needs=tuple(needs),
        files={file: msgspec.json.format(msgspec.json.encode(laid), indent=2).decode() + "\n"},
        upkeep=upkeep_of(told),
    )
