"""A path in a stack's file belongs to that file's folder, wherever its reader stands."""

import os
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from withstand.files import why_closed
from withstand.spec.mistake import of_file
from withstand.spec.parse import tree_from_file
from withstand.spec.stack import (
    Agent,
    Edge,
    Engine,
    Gateway,
    Monitoring,
    Secret,
    Served,
    Stack,
    stack_from_file,
    stack_of,
)
from withstand.stack.configs import READ, WRITTEN, changed, found, is_path

_THEIR_OWN = frozenset({"command", "remote"})
"""Kinds whose ``model`` is a name that only they understand."""
_OF_PLANS = (
    *("workload.path", "workload.path.*"),
    *(f"{target}.{field}" for target in ("target", "targets.*") for field in ("cacert", "api_key_file")),
)
_Part = TypeVar("_Part", Edge, Gateway, Monitoring, Agent)
_Ours = TypeVar("_Ours", Gateway, Agent)


def settled_stack(path: Path) -> Stack:
    """The typed stack of a file, as it is started here.

    Raises:
        UsageError: it cannot be read.
        SpecError: a key is wrong; the text names it, and the file.
    """
    return with_programs(settled(stack_from_file(path), path.parent), path.parent)


def settled_tree(tree: dict[str, Any], path: Path) -> Stack:
    """The same of a file that was read already: a pipe is read once.

    Raises:
        SpecError: a key is wrong; the text names it, and the file.
    """
    with of_file(path):
        return with_programs(settled(stack_of(tree, path.stem), path.parent), path.parent)


def settled(stack: Stack, folder: Path) -> Stack:
    """The same with whole paths. What may be a name too is a path where it leads to something from ``folder``."""
    engines = {name: _engine(each, folder) for name, each in stack.engines.items()}
    token = _secret(stack.ray.token, folder) if stack.ray.token else None
    return replace(
        stack,
        engines=engines,
        gateway=_configured(_part(stack.gateway, folder), "gateway", folder),
        edge=_edge(_part(stack.edge, folder), folder),
        monitoring=_part(stack.monitoring, folder),
        agent=_configured(_part(stack.agent, folder), "agent", folder),
        ray=replace(stack.ray, token=token),
        plan=_plan(stack.plan, folder),
    )


def with_programs(stack: Stack, folder: Path) -> Stack:
    """The same with whole paths of programs, which elsewhere are an image's own."""
    edge, monitoring = stack.edge, stack.monitoring
    return replace(
        stack,
        engines={name: _run_by(each, folder) for name, each in stack.engines.items()},
        edge=edge and replace(edge, program=_program(edge.program, folder)),
        monitoring=monitoring and replace(monitoring, program=_program(monitoring.program, folder)),
        ray=replace(stack.ray, python=_program(stack.ray.python, folder)),
    )


def with_variables_of_keys(stack: Stack) -> Stack:
    """The same, its gateway with the variables that the keys of its ``keys_file`` stand in, where that is here.

    Raises:
        UsageError: it is no such file, or cannot be read.
    """
    gateway = stack.gateway
    for _, path in found(gateway and gateway.config, "keys_file"):
        if gateway and (why_closed(Path(path)) or Path(path).is_file()):
            names = [name for _, name in found(tree_from_file(Path(path), "keys_file"), "keys.*.sha256_env")]
            gateway = replace(gateway, env={name: Secret(from_env=name) for name in names} | gateway.env)
    return replace(stack, gateway=gateway)


def _run_by(told: Engine, folder: Path) -> Engine:
    command = [_program(part, folder) or part for part in told.args[:1]] if told.kind == "command" else told.args[:1]
    return replace(
        told,
        python=_program(told.python, folder),
        binary=_program(told.binary, folder),
        args=(*command, *told.args[1:]),
    )


def _program(told: str | None, folder: Path) -> str | None:
    """Without a slash it is looked for on the path."""
    return _there(told, folder) if told and "/" in told else told


def _configured(told: _Ours | None, kind: str, folder: Path) -> _Ours | None:
    """What its configuration names: it is started with another file, elsewhere."""
    if told is None:
        return None
    config = told.config
    for field in (*READ[kind], *WRITTEN[kind]):
        config = changed(config, field, lambda text: _whole(text, folder) if is_path(text) else text)
    return replace(told, config=config)


def _plan(tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A plan's own paths go by where its reader stands; here they lead to what lies in ``folder`` first."""
    for field in _OF_PLANS:
        tree = changed(tree, field, lambda text: _there(text, folder) or text)
    told: dict[str, Any] = changed(tree, "workload.tokenizer", lambda text: _named_file(text, folder))
    return told


def _named_file(text: str, folder: Path) -> str:
    """Most are names: ``engine``, ``tiktoken``."""
    return (_there(text, folder) or text) if "/" in text or text.endswith(".json") else text


def _engine(told: Engine, folder: Path) -> Engine:
    named = told.kind in _THEIR_OWN
    draft = told.speculative and replace(told.speculative, draft_model=_there(told.speculative.draft_model, folder))
    return replace(
        told,
        env=_env(told, folder),
        api_key=told.api_key and _secret(told.api_key, folder),
        model=told.model if named else _there(told.model, folder),
        speculative=told.speculative if named else draft,
    )


def _part(told: _Part | None, folder: Path) -> _Part | None:
    return told and replace(told, env=_env(told, folder))


def _edge(told: Edge | None, folder: Path) -> Edge | None:
    """Nginx would look in the stack's own folder, where nobody has put anything."""
    if told is None or told.tls is None:
        return told
    tls = replace(told.tls, certificate=_whole(told.tls.certificate, folder), key=_whole(told.tls.key, folder))
    return replace(told, tls=tls)


def _env(told: Served, folder: Path) -> dict[str, str | Secret]:
    return {name: _secret(value, folder) if isinstance(value, Secret) else value for name, value in told.env.items()}


def _secret(told: Secret, folder: Path) -> Secret:
    return replace(told, from_file=_there(told.from_file, folder))


def _whole(path: str, folder: Path) -> str:
    """Without ``..``, but where that follows a link and so leads elsewhere than it reads."""
    told = str(folder.absolute() / path)
    read = os.path.normpath(told)
    return told if "\0" in told or os.path.realpath(read) != os.path.realpath(told) else read


def _there(path: str | None, folder: Path) -> str | None:
    """As it is, where nothing of that name lies in the folder: a hub's name, or a path of who calls us.

    What may not be looked at is taken for a path: who reads it tells.
    """
    there = folder / path if path else None
    return _whole(str(path), folder) if there and (why_closed(there) or there.exists()) else path
