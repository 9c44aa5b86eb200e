"""A session keeps what was answered, so nothing that went wrong in it makes the next question fail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripted import Agent, Scripted, said, texts, wait_for, wants
from withstand.agent.ways.way import halved, remembered, whole

Model = Callable[..., Scripted]
MakeAgent = Callable[..., Agent]
MINE = {"x-session-id": "s"}
LONG = "x" * 2000
SIX_TIMES_SEVEN = ("calculator", {"expression": "6*7"})


def _heard(scripted: Scripted) -> list[str]:
    """What the model was sent last."""
    return list(texts(scripted.script.asked[-1]["messages"]))


def test_a_question_that_was_refused_is_not_kept(model: Model, agent: MakeAgent, tmp_path: Path) -> None:
    """Every later question of the session was refused too, also after a restart."""
    scripted = model(said("Yes."))
    scripted.script.chars_max = 1000
    kept = {"sessions": {"path": str(tmp_path / "sessions.db")}}
    running = agent(scripted.url, **kept)
    assert running.ask("One?", headers=MINE).text == "Yes."
    for stream in (True, False):
        got = running.ask(LONG, headers=MINE, stream=stream)
        assert (got.status, got.json["error"]["type"]) == (400, "invalid_request_error")
    assert running.ask("Two?", headers=MINE).text == "Yes."
    assert _heard(scripted) == ["One?", "Yes.", "Two?"], "and what was there before is there still"
    assert not running.stop()
    assert agent(scripted.url, **kept).ask("Three?", headers=MINE).text == "Yes."
    assert _heard(scripted) == ["One?", "Yes.", "Two?", "Yes.", "Three?"]


def test_a_task_that_outgrew_the_model_is_not_kept(model: Model, agent: MakeAgent, tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text(LONG)
    read = wants(("read_file", {"path": str(tmp_path / "big.txt")}))
    scripted = model(said("Yes."), read, said("Yes."))
    scripted.script.chars_max = 1000
    running = agent(scripted.url, files={"allow": [str(tmp_path)]})
    running.ask("One?", headers=MINE)
    got = running.ask("Read.", headers=MINE)
    assert (got.finish, got.steps[-1]["name"]) == ("length", "context")
    assert "does not keep" in got.steps[-1]["error"]
    assert running.ask("Two?", headers=MINE).text == "Yes."
    assert _heard(scripted) == ["One?", "Yes.", "Two?"]


def test_a_session_that_has_grown_too_long_forgets_its_beginning(model: Model, agent: MakeAgent) -> None:
    scripted = model(said("y" * 100))
    scripted.script.chars_max = 700
    running = agent(scripted.url)
    rules = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Question 0?"}]
    assert running.ask(rules, headers=MINE).status == 200
    answers = [running.ask(f"Question {i}?", headers=MINE) for i in range(1, 12)]
    assert {answer.status for answer in answers} == {200}
    refused = [step for answer in answers for step in answer.steps if not step.get("ok", True)]
    assert 1 <= len(refused) < 5, "what is forgotten stays so, and is not sent again each time"
    assert "without the session's older messages" in refused[0]["error"]
    heard = _heard(scripted)
    assert (heard[0], heard[1][:8], heard[-1]) == ("Be brief.", "Question", "Question 11?")


def test_of_a_task_whose_client_left_nothing_is_kept(model: Model, agent: MakeAgent) -> None:
    scripted = model(wants(SIX_TIMES_SEVEN), ["hang"], said("Yes."))
    running = agent(scripted.url)
    running.leave(stream=True, until=scripted.script.hangs.is_set, headers=MINE)
    wait_for(lambda: running.metric('requests_total{outcome="client_left"}') == 1)
    assert running.ask("Again?", headers=MINE).text == "Yes."
    assert _heard(scripted) == ["Again?"]


def test_a_task_that_a_limit_cut_is_not_kept(model: Model, agent: MakeAgent) -> None:
    scripted = model(wants(SIX_TIMES_SEVEN), ["hang"], said("Yes."))
    running = agent(scripted.url, limits={"seconds": 1})
    assert running.ask("One?", headers=MINE).finish == "length"
    assert running.ask("Two?", headers=MINE).text == "Yes."
    assert _heard(scripted) == ["Two?"]


def test_half_a_call_of_a_tool_is_no_json_that_the_model_is_sent(model: Model, agent: MakeAgent) -> None:
    """An engine that reads a call's arguments refuses the whole conversation for them."""
    half = [*wants(("calculator", '{"expr')), "length"]
    scripted = model(half, said("Yes."))
    got = agent(scripted.url).ask("One?")
    assert (got.text, [step["ok"] for step in got.steps if step["kind"] == "tool"]) == ("Yes.", [False])
    call, result = scripted.script.asked[1]["messages"][-2:]
    assert call["tool_calls"][0]["function"]["arguments"] == "{}"
    assert "no JSON" in result["content"]


def test_forgetting_goes_on_until_only_the_question_is_left() -> None:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s"}]
    messages += [{"role": role, "content": str(i)} for i in range(9) for role in ("user", "assistant")]
    forgotten, history, seen = 0, len(messages), []
    while forgotten < history:
        forgotten = halved(messages, forgotten, history)
        seen.append(forgotten)
        assert forgotten == history or messages[forgotten]["role"] == "user"
        assert remembered(messages, forgotten)[0] == messages[0]
    assert seen == sorted(set(seen))
    assert len(seen) < 7


def test_whole_leaves_good_calls_alone() -> None:
    function = {"name": "f", "arguments": '{"a": 1}'}
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    asked: list[dict[str, Any]] = [call, {"role": "tool", "tool_call_id": "c", "content": "1"}]
    assert whole(asked) == asked
