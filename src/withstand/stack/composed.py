"""Stack → Blueprint: which processes there are, and how they know of each other. Pure: ports and models come in."""

from typing import Any

import msgspec

from withstand import plugins
from withstand.errors import SpecError
from withstand.spec.stack import Engine, Gateway, Stack
from withstand.spec.targets import laid_over_tree
from withstand.stack.blueprint import Blueprint, Place, Process, in_order, upkeep_of
from withstand.stack.engines.kind import Kind, Small
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
    _check_roles(stack)
    first = next(iter(urls))
    door = urls[first]
    if stack.gateway:
        gateway = _gateway(stack.gateway, place, [p.name for p in processes], _seats(stack, urls, models, started))
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


def wanted_small(stack: Stack) -> set[Small]:
    """The forms in which the model that comes along is served by somebody."""
    wanted = {_kind(name, told).small for name, told in stack.engines.items() if told.model is None}
    return {form for form in wanted if form}


def _check_roles(stack: Stack) -> None:
    for name, told in stack.engines.items():
        if told.role and stack.gateway is None:
            raise SpecError(
                f"The stack is wrong: prefill and decode come together in a gateway - at `$.engines.{name}.role`; "
                "add [gateway]."
            )


def _kind(name: str, told: Engine) -> Kind:
    kind: Kind = plugins.load("engines", told.kind, f"engines.{name}.kind")
    return kind


def _seats(
    stack: Stack, urls: dict[str, str], models: dict[str, str], started: dict[str, Process | None]
) -> dict[str, Any]:
    """Engines by the model that they serve, as the gateway wants them told."""
    seats: dict[str, Any] = {}
    for name, told in stack.engines.items():
        key, process = told.api_key, started[name]
        seat = {
            "url": urls[name],
            "api_key_env": key and key.from_env,
            "api_key_file": key and key.from_file,
            "role": told.role,
            "bootstrap_port": process and process.bootstrap_port,
        }
        model = seats.setdefault(models[name], {"engines": []})
        model["engines"].append({field: value for field, value in seat.items() if value is not None})
        if told.role and process and process.disaggregation:
            model["disaggregation"] = {"style": process.disaggregation}
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
