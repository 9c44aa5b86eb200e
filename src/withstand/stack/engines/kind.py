"""What a kind of engine is to a stack: a pure function from its description to a process."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import Literal, Protocol

from withstand.spec.mistake import wrong
from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process

Small = Literal["gguf", "folder"]
"""A GGUF file, or a folder as Hugging Face lays it out."""


class Kind(Protocol):
    """One kind. ``withstand.engines`` is the group of entry points for those of others."""

    small: Small | None
    """How it takes the small model that comes along; None = it is always told one."""

    def process(self, name: str, told: Engine, place: Place) -> Process | None:
        """How it is run; None = it is not ours to run.

        Raises:
            SpecError: it cannot do what is wanted; the text names the key.
        """

    def model(self, told: Engine, place: Place) -> str:
        """The model's name in requests."""


def refuse(name: str, told: Engine, keys: Iterable[str], kind: str) -> None:
    """Say so where one of these is wanted of a kind that cannot do it."""
    for key in keys:
        if getattr(told, key) is not None:
            raise wrong(f"engines.{name}.{key}", f"{kind} cannot do that; leave it out")


def required(name: str, told: Engine, key: str, what: str) -> str:
    """A text that this kind cannot do without."""
    value: str | None = getattr(told, key)
    if not value:
        raise wrong(f"engines.{name}.{key}", f"{what}; give it")
    return value


def folder_of(name: str, told: Engine, place: Place) -> str:
    """The model's folder or name: as told, or the small one that comes along."""
    if told.model is None and place.small_folder is not None:
        return str(place.small_folder)
    return required(name, told, "model", "a model's folder or name is needed")


def model_name(told: Engine, place: Place) -> str:
    """In requests: as asked for, or the last part of the model's name."""
    return told.served_as or (told.model or place.small_model_name).rstrip("/").rpartition("/")[2]


def program(told: Engine, script: str) -> str:
    """A script that a package has installed: as told, beside ``python``, or on the path."""
    if told.binary is None and told.python is not None:
        return str(PurePath(told.python).with_name(script))
    return told.binary or script


def options(pairs: Iterable[tuple[str, object]]) -> tuple[str, ...]:
    """``--key value`` of all that are given; True is the key alone."""
    told: list[str] = []
    for key, value in pairs:
        if value is not None and value is not False:
            told += [key] if value is True else [key, str(value)]
    return tuple(told)
