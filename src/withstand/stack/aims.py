"""Where a plan's targets lead in a stack that is up: a service's name → its address, model and metrics. Pure.

``service`` in ``[target]`` or ``[targets.NAME]`` of a stack's plan names it; without one it is the door of the model.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from withstand.spec.mistake import wrong
from withstand.spec.targets import laid_over_tree
from withstand.stack.blueprint import Blueprint, Process, behind
from withstand.stack.ports import HOST
from withstand.stack.ray import RAY

Tree = dict[str, Any]
_SERVICE = "service"
_ASKED = (_SERVICE, "base_url")
"""Either of them says who is asked."""
_AGENT = "agent"


def with_aims(plan: Tree, blueprint: Blueprint, model: str | None = None) -> Tree:
    """The plan with an address for every target that has none; ``model`` is what was typed.

    Raises:
        SpecError: there is no such service.
    """
    base = plan.get("target", {})
    if not isinstance(base, dict):
        return plan
    if isinstance(targets := plan.get("targets"), dict) and targets:
        aimed = {name: _aimed(f"targets.{name}", base, told, blueprint, model) for name, told in targets.items()}
        return plan | {"target": {key: base[key] for key in base if key != _SERVICE}, "targets": aimed}
    return plan | {"target": _aimed("target", {}, base, blueprint, model)}


def asked_as(load: Tree, own: Tree) -> Tree:
    """Another plan's load, asked of what the stack's ``own`` plan asks; its ``[target]`` is laid over that one's.

    One that says itself who is asked keeps its targets as they are.
    """
    told = load.get("target", {})
    if load.get("targets") or not isinstance(told, dict) or any(key in told for key in _ASKED):
        return load
    kept = {key: own[key] for key in ("target", "targets") if key in own}
    return load | kept | ({"target": laid_over_tree(own.get("target", {}), told)} if told else {})


def _aimed(where: str, base: Tree, told: Any, blueprint: Blueprint, model: str | None) -> Any:
    whole = laid_over_tree(base, told)
    if not isinstance(whole, dict) or "base_url" in whole:
        return told
    asked, service = model or whole.get("model"), whole.get(_SERVICE)
    door = _door(blueprint, asked) if service is None else _service(where, blueprint, service)
    led = {
        "base_url": door.url,
        "model": asked or door.model,
        "metrics_urls": _metrics(blueprint, door.service, asked or door.model),
    }
    return {key: value for key, value in (led | told).items() if key != _SERVICE}


class _Door(NamedTuple):
    service: str
    url: str
    model: str


def _door(blueprint: Blueprint, model: str | None) -> _Door:
    """The stack's own; where an agent stands beside a gateway, models of engines are asked of the gateway."""
    last = _last(blueprint.processes, ("edge", _AGENT, "gateway"))
    if model in (None, blueprint.model):
        return _Door(last, blueprint.door, blueprint.model)
    edge = [process for process in blueprint.processes if process.name == "edge"]
    return _Door(last, edge[0].base_url if edge else blueprint.door, blueprint.model)


def _last(processes: Sequence[Process], names: Sequence[str]) -> str:
    there = [process.name for process in processes]
    return next((name for name in names if name in there), there[0] if there else "")


def _service(where: str, blueprint: Blueprint, name: str) -> _Door:
    found = {process.name: process for process in blueprint.processes}
    if RAY in found and blueprint.models.get(name) in found[RAY].serves:
        return _Door(RAY, found[RAY].base_url, blueprint.models[name])
    if name not in found:
        names = ", ".join(found)
        raise wrong(f"plan.{where}.service", f"it has no service {name!r}, but {names}")
    if name == _AGENT:
        return _Door(name, found[name].base_url, blueprint.model)
    served = [model for process in behind(name, blueprint.processes) for model in process.serves]
    return _Door(name, found[name].base_url, served[0] if served else blueprint.model)


def asked_there(blueprint: Blueprint, url: str, model: str | None) -> frozenset[str]:
    """The services that a request to an address goes through, or may; none where nobody of theirs listens there."""
    at = urlsplit(url)
    door = next((each for each in blueprint.processes if each.port == at.port), None)
    if door is None or at.hostname not in {HOST, "localhost"}:
        return frozenset()
    there = behind(door.name, blueprint.processes)
    serving = _serving(there, model)
    by_model = any(model in process.serves for process in serving)
    idle = {p.name for p in there if (p.serves and p not in serving) or (by_model and p.kind == _AGENT)} - {door.name}
    return frozenset(process.name for process in there) - idle


def _serving(there: Sequence[Process], model: str | None) -> list[Process]:
    """Engines that serve the model; all of them where none does, as an agent's."""
    engines = [process for process in there if process.serves]
    return [process for process in engines if model in process.serves] or engines


def _metrics(blueprint: Blueprint, service: str, model: str) -> list[str]:
    """Of the gateways and engines behind it."""
    there = behind(service, blueprint.processes) if service else []
    told = [process for process in there if process.kind == "gateway"] + _serving(there, model)
    return [process.metrics_url for process in told if process.metrics_url]
