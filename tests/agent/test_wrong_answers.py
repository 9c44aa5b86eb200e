"""Models that answer otherwise than they must: each is a failure of the model, in one sentence, and counted so."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from scripted import Agent, Scripted, wait_for

Model = Callable[..., Scripted]
MakeAgent = Callable[..., Agent]


@pytest.mark.parametrize("answer", [["endless"], [{"tool_calls": [{"function": {"arguments": "x" * 100_000}}]}] * 40])
def test_an_answer_without_an_end_is_cut(model: Model, agent: MakeAgent, answer: list[Any]) -> None:
    """It grew in the agent's memory for as long as it went on."""
    running = agent(model(answer).url)
    got = running.ask("?")
    assert got.status == 502
    assert "does not end" in got.json["error"]["message"]
    wait_for(lambda: running.metric('requests_total{outcome="model_failed"}') == 1)


def test_a_line_ends_where_the_standard_of_events_says(model: Model, agent: MakeAgent) -> None:
    """U+2028 stands in JSON as it is; it is no line's end there."""
    event = 'raw {"choices": [{"delta": {"content": "one\u2028two"}}]}'
    assert agent(model([event]).url).ask("?").text == "one\u2028two"


_ODD: list[dict[str, Any]] = [
    {"usage": "x"},
    {"usage": [1]},
    {"usage": {"completion_tokens": "5", "prompt_tokens": "z"}},
    {"usage": {"completion_tokens": 5}},
    {"usage": {"completion_tokens": 5, "prompt_tokens": None}},
    {"usage": {"completion_tokens": 10**25, "prompt_tokens": 1}},
    *(
        {"choices": [{"delta": delta}]}
        for delta in (
            {"content": 5},
            {"content": ["a"]},
            {"tool_calls": "x"},
            {"tool_calls": [{"function": "x"}]},
            {"tool_calls": [{"function": {"name": 5}}]},
            {"tool_calls": [{"index": "a"}]},
        )
    ),
    {"choices": "x"},
]


@pytest.mark.parametrize("way", ["native", "schema"])
def test_what_is_not_as_it_must_be_is_the_models_failure(model: Model, agent: MakeAgent, way: str) -> None:
    """Before the answer's first event with a status, behind it as an event; nothing of it on stderr."""
    odd = [f"raw {json.dumps(each)}" for each in _ODD]
    if way == "schema":
        odd = [each for each in odd if "tool_calls" not in each]
    first = {"native": "Well", "schema": '{"action": "answer", "input": "Well'}[way]
    running = agent(model(*([*begun, each] for each in odd for begun in ([], [{"content": first}]))).url, way=way)
    for each in odd:
        whole = running.ask("?", stream=False)
        assert (whole.status, whole.json["error"]["code"]) == (502, "model_failed"), each
        begun = running.ask("?")
        assert (begun.status, begun.text) == (200, "Well"), each
        assert "OpenAI's API" in begun.events[-1]["error"]["message"], each
        assert "[DONE]" not in begun.raw
    wait_for(lambda: running.metric('requests_total{outcome="model_failed"}') == 2 * len(odd))


def test_half_a_surrogate_pair_is_no_text(model: Model, agent: MakeAgent) -> None:
    broken = r'{"action": "answer", "input": "a\udc00b"}'
    assert agent(model([{"content": broken}]).url, way="schema").ask("?").text == "a?b"


def test_a_count_below_0_is_not_believed(model: Model, agent: MakeAgent) -> None:
    """It gave a task tokens that it did not have."""
    call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "calculator", "arguments": "{}"}}]}
    running = agent(model([call], usage=(-100_000, 5)).url, limits={"tokens": 300})
    got = running.ask("?", stream_options={"include_usage": True})
    assert [step["name"] for step in got.steps if step["kind"] == "limit"] == ["tokens"]
    assert got.events[-1]["usage"]["prompt_tokens"] > 0
