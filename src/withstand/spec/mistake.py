"""What is wrong in a stack's or a plan's file, in one form: ``The stack s.toml is wrong: WHAT - at `$.KEY```.

What is found out in a tree does not know of a file; whoever has read one says so (``of_file``).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from withstand.errors import SpecError

_HEAD = "The stack is wrong: "
_PLAN = "The plan is wrong: "


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
