"""Agents and scripted models that are gone when a test is over."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scripted import Agent, Event, Scripted


@pytest.fixture
def model() -> Iterator[Callable[..., Scripted]]:
    made: list[Scripted] = []

    def make(*answers: list[Event] | int, **more: Any) -> Scripted:
        made.append(Scripted(*answers, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    for name in ("langgraph", "httpx", "starlette", "uvicorn"):
        pytest.importorskip(name, reason="the agent's extra is not installed: make test-agent")
    made: list[Agent] = []

    def make(url: str, **config: Any) -> Agent:
        made.append(Agent(tmp_path, url, **config))
        return made[-1]

    yield make
    for each in made:
        assert not each.stop(), "an agent that is well says nothing"
