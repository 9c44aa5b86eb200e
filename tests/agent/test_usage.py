"""Tokens are of all calls of the model, also of one that did not come to its end: what was heard of it counts."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from scripted import Agent, Scripted, said, wait_for, wants

Model = Callable[..., Scripted]
MakeAgent = Callable[..., Agent]
WORDS = said("What was heard of an answer is nine words.")
WITH_USAGE = {"stream_options": {"include_usage": True}}


def _usage(answer: Any) -> tuple[int, int]:
    told = (answer.events[-1] if answer.events else answer.json)["usage"]
    return told["prompt_tokens"], told["completion_tokens"]


def _counted(running: Agent) -> tuple[float, float]:
    prompt, output = (running.metric(f'tokens_total{{kind="{kind}"}}') for kind in ("prompt", "output"))
    return prompt, output


@pytest.mark.parametrize("stream", [True, False])
def test_a_call_that_a_limit_cut_counts_as_one_whose_server_tells_no_usage(
    model: Model, agent: MakeAgent, stream: bool
) -> None:
    running = agent(model(WORDS, [*WORDS, "hang"], usage=None).url, limits={"seconds": 1})
    fields = WITH_USAGE if stream else {}
    whole, cut = (running.ask("?", stream=stream, **fields) for _ in range(2))
    assert _usage(cut) == _usage(whole)
    assert _usage(cut)[1] == len(WORDS)
    wait_for(lambda: _counted(running) == (2 * _usage(whole)[0], 2 * len(WORDS)))


def test_a_cut_call_is_added_to_those_before(model: Model, agent: MakeAgent) -> None:
    scripted = model(wants(("calculator", {"expression": "6*7"})), [*WORDS, "hang"])
    cut = agent(scripted.url, limits={"seconds": 1}).ask("?", **WITH_USAGE)
    assert _usage(cut)[0] > 10
    assert _usage(cut)[1] == 5 + len(WORDS)
    assert [step.get("output_tokens") for step in cut.steps if step["kind"] == "model"] == [5, None]


def test_counts_that_a_server_told_before_the_cut_stand(model: Model, agent: MakeAgent) -> None:
    """As vLLM tells them with every event, where it is set to."""
    told = 'raw {"choices": [{"delta": {"content": "Well"}}], "usage": {"prompt_tokens": 70, "completion_tokens": 3}}'
    assert _usage(agent(model([told, "hang"]).url, limits={"seconds": 1}).ask("?", **WITH_USAGE)) == (70, 3)


@pytest.mark.parametrize("ending", ["cut", "error", "raw nonsense"])
def test_a_call_that_broke_off_is_counted(model: Model, agent: MakeAgent, ending: str) -> None:
    running = agent(model(WORDS, [*WORDS, ending], usage=None).url)
    whole = _usage(running.ask("?", **WITH_USAGE))
    assert "error" in running.ask("?").events[-1]
    wait_for(lambda: _counted(running) == (2 * whole[0], 2 * whole[1]))


@pytest.mark.parametrize("stream", [True, False])
def test_a_call_whose_client_left_is_counted(model: Model, agent: MakeAgent, stream: bool) -> None:
    scripted = model(WORDS, [*WORDS, "hang"], usage=None)
    running = agent(scripted.url)
    whole = _usage(running.ask("?", **WITH_USAGE))

    def is_heard() -> bool:
        scripted.script.hangs.wait(20)
        time.sleep(0.5)  # what was sent is heard a moment later
        return True

    running.leave(stream=stream, until=is_heard)
    wait_for(lambda: running.metric('requests_total{outcome="client_left"}') == 1)
    prompt, output = _counted(running)
    assert prompt == 2 * whole[0]
    assert whole[1] < output <= 2 * whole[1]


def test_a_call_of_which_nothing_was_heard_counts_nothing(model: Model, agent: MakeAgent) -> None:
    running = agent(model(429, ["cut"], ["error"], ["hang"]).url, limits={"seconds": 1})
    for _ in range(3):
        assert running.ask("?").status in {429, 502}
    assert _usage(running.ask("?", **WITH_USAGE)) == (0, 0)
    wait_for(lambda: running.metric('requests_total{outcome="limit"}') == 1)
    assert _counted(running) == (0, 0)
