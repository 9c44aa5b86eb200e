"""What is wrong in a stack's or a plan's file, in one form: ``The stack s.toml is wrong: WHAT - at `$.KEY```.

What is found out in a tree does not know of a file; whoever has read one says so (``of_file``).
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from withstand.errors import SpecError

_HEAD = "The stack is wrong: "
_PLAN = "The plan is wrong: "
_AT = re.compile(r" - at `(\$[^`]*)`$")
_UNNAMED = "[...]"
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def wrong(path: str, what: str) -> SpecError:
    """A sentence that names the key."""
    return SpecError(f"{_HEAD}{what} - at `$.{path}`.")


def unfit(told: str) -> SpecError:
    """Of a tree that has not the type of a stack."""
    return SpecError(f"{_HEAD}{told}. `withstand schema stack` prints what is allowed.")


@contextmanager
def of_file(path: Path, verdict: str = "is wrong") -> Iterator[None]:
    """What is found wrong in a stack or a plan meanwhile is so in this file; ``verdict`` is the stack's.

    Raises:
        SpecError: the same, with the file's name.
    """
    try:
        yield
    except SpecError as e:
        told = str(e)
        if told.startswith(_HEAD):
            raise SpecError(f"The stack {path} {verdict}: {told.removeprefix(_HEAD)}") from None
        if told.startswith(_PLAN):
            raise SpecError(f"The plan in {path} is wrong: {told.removeprefix(_PLAN)}") from None
        raise


@contextmanager
def of_typed() -> Iterator[None]:
    """What is found wrong in a plan meanwhile was not so without what was typed.

    Raises:
        SpecError: the same, told so.
    """
    try:
        yield
    except SpecError as e:
        raise SpecError(str(e).replace(_PLAN, "What was typed is wrong: ", 1)) from None


def with_keys(told: str, tree: Any, convert: Callable[[Any], object]) -> str:
    """The message of a ``ValidationError``, which leaves out a table's key (``$.engines[...].kind``), with that key.

    It is the one with which alone the same is wrong.
    """
    while (at := _AT.search(told)) and _UNNAMED in at[1]:
        key = _key(told, tree, at[1].partition(_UNNAMED)[0], convert)
        if key is None:
            break
        told = told.replace(_UNNAMED, f".{key}", 1)
    return told


def _key(told: str, tree: Any, path: str, convert: Callable[[Any], object]) -> str | None:
    steps = [name or int(index) for name, index in _STEP.findall(path)]
    try:
        return next((key for key in _below(tree, steps) if _says(told, _only(tree, steps, key), convert)), None)
    except (LookupError, TypeError):  # a key with dots in it
        return None


def _below(tree: Any, steps: list[str | int]) -> Any:
    for step in steps:
        tree = tree[step]
    return tree


def _only(tree: Any, steps: list[str | int], key: str) -> Any:
    """The tree, with that key alone in the table."""
    if not steps:
        return {key: tree[key]}
    first, *rest = steps
    within = _only(tree[first], rest, key)
    return [*tree[:first], within, *tree[first + 1 :]] if isinstance(first, int) else {**tree, first: within}


def _says(told: str, tree: Any, convert: Callable[[Any], object]) -> bool:
    """Whether the same is wrong with it, wherever."""
    try:
        convert(tree)
    except msgspec.ValidationError as e:
        return _AT.sub("", str(e)) == _AT.sub("", told)
    return False
