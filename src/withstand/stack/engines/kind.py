"""What a kind of engine is to a stack: a pure function from its description to a process."""

from collections.abc import Iterable
from typing import Protocol

from withstand.errors import SpecError
from withstand.spec.stack import Engine
from withstand.stack.blueprint import Place, Process


class Kind(Protocol):
    """One kind. ``withstand.engines`` is the group of entry points for those of others."""

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
            raise SpecError(f"The stack is wrong: {kind} cannot do that - at `$.engines.{name}.{key}`; leave it out.")


def required(name: str, told: Engine, key: str, what: str) -> str:
    """A text that this kind cannot do without."""
    value: str | None = getattr(told, key)
    if not value:
        raise SpecError(f"The stack is wrong: {what} - at `$.engines.{name}.{key}`; give it.")
    return value


def options(pairs: Iterable[tuple[str, object]]) -> tuple[str, ...]:
    """``--key value`` of all that are given; True is the key alone."""
    told: list[str] = []
    for key, value in pairs:
        if value is not None and value is not False:
            told += [key] if value is True else [key, str(value)]
    return tuple(told)
