"""Stacks of small servers of our own, for tests that bring them up."""

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from withstand.spec.stack import Stack, stack_of
from withstand.stack.local import bring_up, standing_for
from withstand.stack.standing import Standing

SERVER = str(Path(__file__).with_name("server.py"))


def command(*more: str, **fields: object) -> dict[str, object]:
    """An engine: ``server.py`` with these arguments behind its port."""
    return {"kind": "command", "args": [sys.executable, SERVER, "{port}", *more], "served_as": "m", **fields}


def shell(script: str, **fields: object) -> dict[str, object]:
    """The same, where something is done before; ``$PORT`` is its port, and it goes on as ``server.py``."""
    return {
        "kind": "command",
        "args": ["sh", "-c", f"{script}\nexec {sys.executable} {SERVER} $PORT"],
        "served_as": "m",
        **fields,
    }


def stack(name: str = "s", **engines: dict[str, object]) -> Stack:
    """Of these engines, or of two."""
    return stack_of({"name": name, "engines": engines or {"a": command(), "b": command("2")}}, name)


def up(told: Stack) -> Standing:
    """As ``withstand up`` does, quietly."""
    return bring_up(told, lambda *_: None, lambda _: None)


def held(told: Stack) -> AbstractContextManager[Standing]:
    """As ``withstand run`` does, quietly."""
    return standing_for(told, lambda *_: None, lambda _: None, lambda _: None)


def until(condition: Callable[[], object], within_s: float = 60.0) -> None:
    """Wait for it."""
    give_up_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < give_up_s
        time.sleep(0.02)
