"""A path in a stack's file belongs to that file's folder, wherever its reader stands."""

from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from withstand.spec.mistake import of_file
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

_THEIR_OWN = frozenset({"command", "remote"})
"""Kinds whose ``model`` is a name that only they understand."""
_Part = TypeVar("_Part", Edge, Gateway, Monitoring, Agent)


def settled_stack(path: Path) -> Stack:
    """The typed stack of a file, as it is started here.

    Raises:
        UsageError: it cannot be read.
        SpecError: a key is wrong; the text names it, and the file.
    """
    return settled(stack_from_file(path), path.parent)


def settled_tree(tree: dict[str, Any], path: Path) -> Stack:
    """The same of a file that was read already: a pipe is read once.

    Raises:
        SpecError: a key is wrong; the text names it, and the file.
    """
    with of_file(path):
        return settled(stack_of(tree, path.stem), path.parent)


def settled(stack: Stack, folder: Path) -> Stack:
    """The same with whole paths. What may be a name too is a path where it leads to something from ``folder``."""
    engines = {name: _engine(each, folder) for name, each in stack.engines.items()}
    token = _secret(stack.ray.token, folder) if stack.ray.token else None
    return replace(
        stack,
        engines=engines,
        gateway=_part(stack.gateway, folder),
        edge=_edge(_part(stack.edge, folder), folder),
        monitoring=_part(stack.monitoring, folder),
        agent=_part(stack.agent, folder),
        ray=replace(stack.ray, token=token),
    )


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
    return str(folder.absolute() / path)


def _there(path: str | None, folder: Path) -> str | None:
    """As it is, where nothing of that name lies in the folder: a hub's name, or a path of who calls us."""
    if not path or not (folder / path).exists():
        return path
    return _whole(path, folder)
