"""One task with the real engine: the small model, held to a schema, calls tools and ends."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from scripted import Agent
from withstand.stack import embedded_engine

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        not all(importlib.util.find_spec(name) for name in ("xllamacpp", "gguf", "numpy")),
        reason="the extra `engine` is not installed",
    ),
]


def test_a_task_with_the_small_model(agent: Callable[..., Agent], tmp_path: Path) -> None:
    limits = {"steps": 2, "seconds": 100}
    with embedded_engine(lambda *_: None, tmp_path / "engine.log", parallel=1, context=2048) as engine:
        running = agent(engine.base_url, way="schema", limits=limits, tools=["calculator"], model_max_tokens=48)
        answer = running.ask("What is 6 * 7?")
        assert answer.status == 200
        model_steps = [step for step in answer.steps if step["kind"] == "model"]
        assert 1 <= len(model_steps) <= 2
        assert all(step["output_tokens"] for step in model_steps)
        assert model_steps[-1]["calls"] == 0
        assert answer.text
        assert answer.raw.endswith("data: [DONE]\n\n")
