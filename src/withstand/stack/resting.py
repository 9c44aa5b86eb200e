"""Engines that our gateway starts when they are asked for, and stops again: ``deploy.min_replicas = 0``. Pure.

Such an engine is no service of the stack any more: its command goes into the gateway's configuration.
"""

from typing import Any

import msgspec

from withstand.spec.mistake import wrong
from withstand.spec.stack import Engine, Room, Stack
from withstand.stack.blueprint import Blueprint, Place, Process
from withstand.stack.composed import GATEWAY
from withstand.stack.state import log_of

_HOSTED = "hosted"


def with_resting(blueprint: Blueprint, place: Place) -> Blueprint:
    """The same, its resting engines left to the gateway.

    Raises:
        SpecError: an engine, or the gateway, has what does not go with it.
    """
    resting = _resting(blueprint.made_of)
    there = {process.name: process for process in blueprint.processes if process.name in resting}
    if not there:
        return blueprint
    for name in there:
        if blueprint.made_of.gateway is None:
            what = "nobody would start it: without a gateway nobody hears that it is asked for; add [gateway]"
            raise wrong(f"engines.{name}.deploy.min_replicas", what)
        _check(name, blueprint.made_of)
    hosted = {process.base_url: _command(process, resting[name], place) for name, process in there.items()}
    left = [_needing_less(process, set(there)) for process in blueprint.processes if process.name not in there]
    processes = tuple(_told(process, hosted, place) if process.name == GATEWAY else process for process in left)
    return msgspec.structs.replace(blueprint, processes=processes, resting=tuple(there.values()))


def left_to_gateway(blueprint: Blueprint) -> list[str]:
    """Engines that it starts; what they say is where a service's log would be."""
    return [name for name, told in _resting(blueprint.made_of).items() if told.kind != "remote"]


def _resting(stack: Stack) -> dict[str, Engine]:
    if stack.runner != "local":
        return {}
    return {name: told for name, told in stack.engines.items() if told.deploy.min_replicas == 0}


def _check(name: str, stack: Stack) -> None:
    told, at = stack.engines[name], f"engines.{name}"
    assert stack.gateway
    if stack.gateway.copies > 1:
        raise wrong("gateway.copies", f"one gateway starts {name}, not several")
    if told.room != Room():
        raise wrong(f"{at}.room", "the gateway that starts it gives it no room of its own")
    if any(not isinstance(value, str) for value in told.env.values()):
        raise wrong(f"{at}.env", "an engine that the gateway starts has the gateway's secrets; put them there")


def _command(process: Process, told: Engine, place: Place) -> dict[str, Any]:
    return {
        "command": list(process.argv),
        "env": process.env,
        "ready": process.health,
        "start_timeout_s": process.upkeep.ready_s,
        "idle_s": told.deploy.idle_s,
        "stop_s": process.upkeep.stop_s,
        "log": str(log_of(place.folder, process.name)),
    }


def _needing_less(process: Process, gone: set[str]) -> Process:
    return msgspec.structs.replace(process, needs=tuple(need for need in process.needs if need not in gone))


def _told(gateway: Process, hosted: dict[str, dict[str, Any]], place: Place) -> Process:
    """What the user has laid over it for an engine wins."""
    file, text = next(iter(gateway.files.items()))
    config = msgspec.json.decode(text)
    for model in config["models"].values():
        model["engines"] = [hosted.get(seat.get("url"), {}) | seat for seat in model["engines"]]
    config["host"] = {"state": str(place.folder / _HOSTED)} | config.get("host", {})
    written = msgspec.json.format(msgspec.json.encode(config), indent=2).decode() + "\n"
    return msgspec.structs.replace(gateway, files={file: written})
