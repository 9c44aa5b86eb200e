"""What the configurations of gateway and agent name of this machine, and what becomes of it in a container. Pure.

What is only read keeps its path, on a volume; secrets come by variables, and the file of keys as a file; what is
written goes to ``STATE``.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from msgspec import Struct

from withstand.spec.mistake import wrong
from withstand.spec.stack import Secret, Stack
from withstand.stack.configs import READ, VARIABLES, WRITTEN, changed, found, is_path
from withstand.stack.exports.secrets import key_of, variable_in

KEYS: Final = PurePosixPath("/etc/withstand-keys")
"""Where the file of the gateway's keys is; its name is its own."""
STATE: Final = PurePosixPath("/var/lib/withstand")
"""Where a container of ours may write."""
_KEYS_FILE, _LOG, _COMMAND = "keys_file", "log.path", "models.*.engines.*.command.*"
_OWN_KEYS = ("models.*.engines.*.api_key_file", "model.api_key_file")
_SERVERS = {"redis": "gateway-redis", "rediss": "gateway-redis"} | dict.fromkeys(
    ("postgres", "postgresql"), "gateway-postgres"
)
_LOOPBACK = re.compile(r"\w+://(?:[^/@\s]*@)?(?:localhost|127\.[\d.]+|\[::1\])(?::|/|$)")
_NOT_ASKED = {"cors"}
"""Addresses of pages that a browser shows."""


class Carried(Struct, frozen=True, kw_only=True):
    """A configuration as a container reads it, and what it wants besides."""

    config: Any
    secrets: dict[str, str]
    """Variable → the key under which the place keeps it."""
    reads: tuple[str, ...]
    """Files and folders that must be there at these paths."""
    keys_file: str | None
    """This machine's, to be mounted in ``KEYS``."""
    writes: bool
    """It wants ``STATE``."""
    extras: tuple[str, ...]
    """Of our package, that its image must have."""


def carried(kind: str, config: Any) -> Carried:
    """Of the gateway's or the agent's, whole."""
    secrets = {name: name for field in VARIABLES[kind] for _, name in found(config, field)}
    secrets |= {variable_in(path): key_of(Secret(from_file=path)) for _, path in _key_files(kind, config)}
    keys_file = next((path for _, path in found(config, _KEYS_FILE)), None) if _KEYS_FILE in READ[kind] else None
    inside = changed(_keys_by_variable(config), _KEYS_FILE, lambda path: str(KEYS / PurePosixPath(path).name))
    for field in WRITTEN[kind]:
        inside = changed(inside, field, lambda text: str(_written(text)) if is_path(text) else text)
    return Carried(
        config=changed(inside, _LOG, lambda _: "-"),  # which the place keeps
        secrets=secrets,
        reads=tuple(dict.fromkeys(path for _, path in _reads(kind, config))),
        keys_file=keys_file,
        writes=any(_writes(kind, config)),
        extras=tuple(_extras(config)),
    )


def config_secrets(stack: Stack) -> list[tuple[str, Secret]]:
    """Where each that a configuration refers to stands → what it is, as ``secrets_of`` has a stack's own."""
    return [
        (f"{kind}.config.{at}", secret)
        for kind, config in _configs(stack)
        for at, secret in (
            *((at, Secret(from_env=name)) for field in VARIABLES[kind] for at, name in found(config, field)),
            *((at, Secret(from_file=path)) for at, path in _key_files(kind, config)),
            *((at, Secret(from_file=path)) for at, path in found(config, _KEYS_FILE) if kind == "gateway"),
        )
    ]


def check_carried(stack: Stack) -> None:
    """Whether what gateway and agent write, and the variables of their keys, have names of their own there.

    Raises:
        SpecError: one has not.
    """
    besides = dict(stack.besides())
    engines = [engine.api_key.from_file for engine in stack.engines.values() if engine.api_key]
    for kind, config in _configs(stack):
        _check_written(kind, config)
        files = [*engines, *(path for _, path in _key_files(kind, config))]
        if taken := sorted({variable_in(path) for path in files if path} & besides[kind].env.keys()):
            what = "elsewhere that variable is of the key in a file; give it another name, or rename the file"
            raise wrong(f"{kind}.env.{taken[0]}", what)


def wanted(stack: Stack, place: str) -> dict[str, str]:
    """What is this machine's → what becomes of it at a place where gateway and agent go."""
    told: dict[str, str] = {}
    is_compose, volume = place == "compose", f"{stack.name}-models"
    for kind, config in _configs(stack):
        at_config = f"{kind}.config"
        for at, path in found(config, _KEYS_FILE) if kind == "gateway" else ():
            how = "user 10001 must be able to read it there" if is_compose else f"put it into {stack.name}-secrets"
            told[f"the file {path} ({at_config}.{at})"] = how
        for at, path in _reads(kind, config):
            how = f"the volume {volume} must hold it as {PurePosixPath(path).name}"
            told[f"what lies at {path} ({at_config}.{at})"] = "have it at this path there" if is_compose else how
        for at, path in _writes(kind, config):
            how = f"what comes is kept in the volume {kind}-state, which begins empty"
            lost = "what comes is lost with its pod, and each replica has its own"
            cure = "; name a server (redis://, postgresql://) by state_env" if at == "state" else ""
            told[f"what is in {path} ({at_config}.{at})"] = how if is_compose else lost + cure
        for at, path in found(config, _LOG) if kind == "gateway" else ():
            if is_path(path):
                told[f"the log {path} ({at_config}.{at})"] = "its lines go to the container's stdout"
        for at, program in found(config, _COMMAND) if kind == "gateway" else ():
            if at.endswith("[0]"):
                told[f"the program {program} ({at_config}.{at})"] = "have it in an image of your own (gateway.deploy)"
    for at, url in _own_addresses(stack):
        told[f"what listens at {url} ({at})"] = "a container would ask itself there; name an address that it reaches"
    return told


def _configs(stack: Stack) -> Iterator[tuple[str, dict[str, Any]]]:
    if stack.gateway:
        yield "gateway", stack.gateway.config
    if stack.agent:
        yield "agent", stack.agent.config


def _reads(kind: str, config: Any) -> Iterator[tuple[str, str]]:
    for field in READ[kind]:
        if field not in {_KEYS_FILE, *_OWN_KEYS}:
            yield from found(config, field)


def _writes(kind: str, config: Any) -> Iterator[tuple[str, str]]:
    for field in WRITTEN[kind]:
        if field != _LOG:
            yield from ((at, text) for at, text in found(config, field) if is_path(text))


def _check_written(kind: str, config: Any) -> None:
    """``STATE`` has each under its own name."""
    owners = dict[PurePosixPath, str]()
    for at, path in _writes(kind, config):
        if (other := owners.setdefault(_written(path), path)) != path:
            what = f"elsewhere {path} would have the name of {other}; rename one of them"
            raise wrong(f"{kind}.config.{at}", what)


def _written(text: str) -> PurePosixPath:
    return STATE / PurePosixPath(text).name


def _key_files(kind: str, config: Any) -> Iterator[tuple[str, str]]:
    for field in _OWN_KEYS:
        if field in READ[kind]:
            yield from found(config, field)


def _keys_by_variable(tree: Any) -> Any:
    """A file of a key is this machine's, so the key comes by a variable, as those of other secrets do."""
    if isinstance(tree, list):
        return [_keys_by_variable(each) for each in tree]
    if not isinstance(tree, dict):
        return tree
    told = {key: _keys_by_variable(each) for key, each in tree.items()}
    if isinstance(path := told.pop("api_key_file", None), str):
        told["api_key_env"] = variable_in(path)
    return told


def _extras(config: Any) -> Iterator[str]:
    if isinstance(config, dict):
        if config.get("telemetry"):
            yield "gateway-otel"
        if config.get("state_env"):  # which of them is for the variable to say
            yield from dict.fromkeys(_SERVERS.values())
        yield from (_SERVERS[scheme] for scheme in [str(config.get("state")).partition("://")[0]] if scheme in _SERVERS)


def _own_addresses(stack: Stack) -> Iterator[tuple[str, str]]:
    for kind, config in _configs(stack):
        yield from _loopback(config, f"{kind}.config")
    for name, engine in stack.engines.items():
        if engine.kind == "remote":
            yield from _loopback(engine.url, f"engines.{name}.url")


def _loopback(tree: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(tree, dict):
        passed = _NOT_ASKED | ({"url"} if "command" in tree else set())  # which is started in the same container
        for key, each in tree.items():
            if key not in passed:
                yield from _loopback(each, f"{at}.{key}")
    elif isinstance(tree, list):
        for i, each in enumerate(tree):
            yield from _loopback(each, f"{at}[{i}]")
    elif isinstance(tree, str) and _LOOPBACK.match(tree):
        yield at, tree
