"""A place where commands run without a gateway around them."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from withstand.gateway.hosting.process import Place


class Told:
    """What a process has said of itself."""

    def __init__(self) -> None:
        self.changes = 0
        self.started: list[tuple[str, int]] = []

    def changed(self) -> None:
        self.changes += 1

    def up(self, name: str, cold_ns: int) -> None:
        self.started.append((name, cold_ns))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def place(tmp_path: Path, told: Told) -> Callable[[], Place]:
    """To be called where an event loop runs."""

    def make() -> Place:
        loop = asyncio.get_running_loop()
        cleared = loop.create_future()
        cleared.set_result(None)
        folder = tmp_path / "state"
        folder.mkdir(exist_ok=True)
        return Place(folder, cleared, loop.time, told.changed, told.up)

    return make
