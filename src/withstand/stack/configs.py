"""What the configurations of our gateway and agent name of this machine: files, folders, variables. Pure.

Both are started and never imported, so what their fields mean is written down here; a test holds it to their types.
A field's place: names between dots, ``*`` = each of a table or list.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

_SEATS = "models.*.engines.*"
READ: Final[Mapping[str, tuple[str, ...]]] = {
    "gateway": ("keys_file", f"{_SEATS}.api_key_file", f"{_SEATS}.cwd"),
    "agent": ("model.api_key_file", "search.path", "files.allow.*"),
}
"""Paths of what must be there."""
WRITTEN: Final[Mapping[str, tuple[str, ...]]] = {
    "gateway": ("state", "log.path", "host.state", f"{_SEATS}.log"),
    "agent": ("sessions.path",),
}
"""Paths of what is made where it is not there."""
VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "gateway": ("state_env", "keys.*.sha256_env", f"{_SEATS}.api_key_env"),
    "agent": ("model.api_key_env",),
}
"""Names of variables whose values must be there."""


def is_path(text: str) -> bool:
    """Neither a server's address, nor stdout."""
    return "://" not in text and text != "-"


def found(tree: Any, field: str) -> Iterator[tuple[str, str]]:
    """Where each of the texts at a field stands → the text. What has another shape is passed by."""
    yield from _found(tree, field.split("."), "")


def changed(tree: Any, field: str, change: Callable[[str], str]) -> Any:
    """The same with other texts at a field."""
    return _changed(tree, field.split("."), change)


def _found(tree: Any, field: list[str], at: str) -> Iterator[tuple[str, str]]:
    if not field:
        if isinstance(tree, str) and tree:
            yield at, tree
    elif isinstance(tree, dict):
        for key in tree if field[0] == "*" else tree.keys() & {field[0]}:
            yield from _found(tree[key], field[1:], f"{at}.{key}" if at else key)
    elif isinstance(tree, list) and field[0] == "*":
        for i, each in enumerate(tree):
            yield from _found(each, field[1:], f"{at}[{i}]")


def _changed(tree: Any, field: list[str], change: Callable[[str], str]) -> Any:
    if not field:
        return change(tree) if isinstance(tree, str) and tree else tree
    if isinstance(tree, dict):
        keys = tree.keys() if field[0] == "*" else tree.keys() & {field[0]}
        return tree | {key: _changed(tree[key], field[1:], change) for key in keys}
    if isinstance(tree, list) and field[0] == "*":
        return [_changed(each, field[1:], change) for each in tree]
    return tree
