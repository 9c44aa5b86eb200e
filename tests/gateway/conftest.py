"""Engines and gateways that are gone when a test is over."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engines import Behave, Engine
from gateways import Gateway
from withstand.stack.ports import free_port


@pytest.fixture(autouse=True)
def _extra() -> None:
    for name in ("fastapi", "uvicorn", "uvloop"):
        pytest.importorskip(name, reason="the gateway's extra is not installed")


@pytest.fixture
def engine() -> Iterator[Callable[[Behave], Engine]]:
    made: list[Engine] = []

    def make(behave: Behave) -> Engine:
        made.append(Engine(behave))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Callable[[str], Gateway]]:
    made: list[Gateway] = []

    def make(toml: str) -> Gateway:
        made.append(Gateway(tmp_path, toml))
        return made[-1]

    yield make
    for each in made:
        assert not each.stop(), "a gateway that is well says nothing"


@pytest.fixture
def nobody() -> str:
    """An address where nothing listens."""
    return f"http://127.0.0.1:{free_port()}"
