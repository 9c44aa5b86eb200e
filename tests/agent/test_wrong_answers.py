"""Models that answer otherwise than they must: each is a failure of the model, in one sentence, and counted so."""

from collections.abc import Callable
from typing import Any

import pytest

from scripted import Agent, Scripted

Model = Callable[..., Scripted]
MakeAgent = Callable[..., Agent]


@pytest.mark.parametrize("answer", [["endless"], [{"tool_calls": [{"function": {"arguments": "x" * 100_000}}]}] * 40])
def test_an_answer_without_an_end_is_cut(model: Model, agent: MakeAgent, answer: list[Any]) -> None:
    """It grew in the agent's memory for as long as it went on."""
    running = agent(model(answer).url)
    got = running.ask("?")
    assert got.status == 502
    assert "does not end" in got.json["error"]["message"]
    assert running.metric('requests_total{outcome="model_failed"}') == 1


def test_a_line_ends_where_the_standard_of_events_says(model: Model, agent: MakeAgent) -> None:
    """U+2028 stands in JSON as it is; it is no line's end there."""
    event = 'raw {"choices": [{"delta": {"content": "one\u2028two"}}]}'
    assert agent(model([event]).url).ask("?").text == "one\u2028two"
