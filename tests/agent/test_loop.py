"""The loop with a scripted model: steps, tools, limits, sessions, and what goes wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripted import Agent, Scripted, said, wait_for, wants

Model = Callable[..., Scripted]
MakeAgent = Callable[..., Agent]
SIX_TIMES_SEVEN = ("calculator", {"expression": "6*7"})


def test_a_task_in_two_steps_as_a_stream(model: Model, agent: MakeAgent) -> None:
    scripted = model(wants(SIX_TIMES_SEVEN), said("It is 42."))
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x-request-id": "r1"}
    answer = agent(scripted.url).ask("6*7?", headers=trace, stream_options={"include_usage": True})
    assert (answer.status, answer.text, answer.finish) == (200, "It is 42.", "stop")
    assert [(s["kind"], s["step"]) for s in answer.steps] == [("model", 1), ("tool", 1), ("model", 2)]
    assert answer.events[-1]["usage"] == {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
    assert answer.raw.endswith("data: [DONE]\n\n")
    assert answer.headers["x-request-id"] == "r1"
    for headers in scripted.script.headers:
        assert trace.items() <= headers.items()
    result = scripted.script.asked[1]["messages"][-1]
    assert result == {"role": "tool", "tool_call_id": "c0", "content": "42"}


def test_without_a_stream_the_body_and_server_timing_tell(model: Model, agent: MakeAgent) -> None:
    scripted = model(wants(SIX_TIMES_SEVEN), said("It is 42."))
    answer = agent(scripted.url).ask("6*7?", stream=False)
    assert answer.json["choices"][0]["message"]["content"] == "It is 42."
    assert [s["kind"] for s in answer.json["withstand"]["steps"]] == ["model", "tool", "model"]
    assert answer.headers["server-timing"].startswith("model;dur=")


def test_the_prefill_that_llama_cpp_tells_is_in_its_step(model: Model, agent: MakeAgent) -> None:
    """Its metrics do not tell it, and whoever asks the agent does not see the model's answers."""
    scripted = model(said("It is 42."), timings={"prompt_ms": 93.25})
    answer = agent(scripted.url).ask("6*7?")
    assert [step["server_timing"] for step in answer.steps] == ["prefill;dur=93.250"]


def test_what_goes_wrong_in_a_tool_is_told_to_the_model(model: Model, agent: MakeAgent) -> None:
    wrong = wants(("calculator", {"expression": "1/0"}), ("calculator", "{broken"), ("nothing", {}), ("search", {}))
    scripted = model(wrong, said("I cannot."))
    answer = agent(scripted.url).ask("?")
    assert answer.text == "I cannot."
    told = [m["content"] for m in scripted.script.asked[1]["messages"] if m["role"] == "tool"]
    assert told[0] == "Error: Division by zero."
    assert "no JSON" in told[1]
    assert "there is no tool 'nothing'" in told[2]
    assert "'query' is missing" in told[3]
    assert [s["ok"] for s in answer.steps if s["kind"] == "tool"] == [False] * 4


def test_the_last_step_has_no_tools_so_that_it_answers(model: Model, agent: MakeAgent) -> None:
    scripted = model(wants(SIX_TIMES_SEVEN), wants(SIX_TIMES_SEVEN), said("Enough."))
    answer = agent(scripted.url, limits={"steps": 3}).ask("?")
    assert answer.text == "Enough."
    assert ["tools" in asked for asked in scripted.script.asked] == [True, True, False]


@pytest.mark.parametrize(
    ("limits", "limit"), [({"seconds": 0.5}, "seconds"), ({"tokens": 15}, "tokens"), ({"tokens": 12}, "tokens")]
)
def test_limits_end_a_task_and_say_so(model: Model, agent: MakeAgent, limits: dict[str, Any], limit: str) -> None:
    scripted = model(wants(SIX_TIMES_SEVEN), [{"content": "Well"}, "hang"])
    answer = agent(scripted.url, limits=limits).ask("?")
    assert answer.steps[-1]["kind"] == "limit"
    assert answer.steps[-1]["name"] == limit
    assert answer.finish == "length"
    assert answer.raw.endswith("data: [DONE]\n\n")
    if limit == "seconds":
        assert scripted.script.left.wait(20), "the model's call is cut"
        cut = answer.steps[-2]
        assert (cut["kind"], cut["ok"]) == ("model", False)
        assert cut["ms"] > 100, "its time is the model's"


def test_a_model_that_wants_tools_to_the_last_is_ended_by_steps(model: Model, agent: MakeAgent) -> None:
    running = agent(model(wants(SIX_TIMES_SEVEN)).url, limits={"steps": 2})
    answer = running.ask("?")
    assert answer.finish == "length"
    assert [(s["kind"], s["name"]) for s in answer.steps][-2:] == [("model", "m"), ("limit", "steps")]
    wait_for(lambda: running.metric('requests_total{outcome="limit"}') == 1)


def test_a_task_that_outgrows_the_model_is_ended_by_its_context(model: Model, agent: MakeAgent) -> None:
    answer = agent(model(wants(SIX_TIMES_SEVEN), 400).url).ask("?")
    assert (answer.status, answer.finish) == (200, "length")
    assert (answer.steps[-1]["kind"], answer.steps[-1]["name"]) == ("limit", "context")


def test_a_question_that_the_model_cannot_read_is_refused(model: Model, agent: MakeAgent) -> None:
    answer = agent(model(400).url).ask("?")
    assert answer.status == 400
    error = answer.json["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "context_length_exceeded")
    assert "context size" in error["message"]


def test_an_engine_that_refuses_within_its_stream(model: Model, agent: MakeAgent) -> None:
    """As SGLang does."""
    scripted = model(["error"], [{"content": "It"}, "error"])
    scripted.script.error = {
        "message": "The input (5000 tokens) is longer than the model's context length (2048 tokens)."
    }
    running = agent(scripted.url)
    first, second = running.ask("?"), running.ask("?")
    assert (first.status, first.json["error"]["code"]) == (400, "context_length_exceeded")
    assert (second.status, second.events[-1]["error"]["code"]) == (200, "model_failed")


def test_a_refusal_that_only_mentions_the_context_is_none_of_it(model: Model, agent: MakeAgent) -> None:
    scripted = model(400)
    scripted.script.error = {"message": "tools need --jinja; context length is 2048"}
    answer = agent(scripted.url).ask("?")
    assert (answer.status, answer.json["error"]["code"]) == (502, "model_failed")


@pytest.mark.parametrize("way", ["schema", "native"])
def test_what_a_client_says_of_sampling_goes_on_as_said(model: Model, agent: MakeAgent, way: str) -> None:
    """But for what forbids a call's end, where a grammar prescribes it."""
    scripted = model(said("x"))
    running = agent(scripted.url, way=way)
    told = {"temperature": 1.9, "seed": 7, "top_p": 0.5, "stop": [".", "\n"], "top_k": 3}
    endless = {"ignore_eos": True, "min_tokens": 9}
    answer = running.ask("?", **told, **endless, user="u", logit_bias=None)
    asked, heeded = scripted.script.asked[0], told if way == "schema" else told | endless
    assert {name: asked[name] for name in (*told, *endless) if name in asked} == heeded
    assert not {"user", "logit_bias"} & asked.keys()
    assert answer.headers["x-withstand-ignored"] == ("user" if way == "native" else "ignore_eos, min_tokens, user")
    assert "x-withstand-ignored" not in running.ask("?").headers
    assert scripted.script.asked[1]["temperature"] == 0.0


def test_fields_that_an_agent_cannot_serve(model: Model, agent: MakeAgent) -> None:
    running = agent(model(said("x")).url)
    for field, value in (("response_format", {"type": "json_object"}), ("logprobs", True), ("temperature", "hot")):
        got = running.ask("?", **{field: value})
        assert got.status == 400
        assert field in got.json["error"]["message"]
    assert running.ask("?", response_format={"type": "text"}, logprobs=False, tools=[]).status == 200


def test_a_value_that_the_model_refuses_is_the_clients_mistake(model: Model, agent: MakeAgent) -> None:
    scripted = model(400)
    scripted.script.error = {"message": "temperature must be at most 2"}
    got = agent(scripted.url).ask("?", temperature=9)
    assert (got.status, got.json["error"]["type"]) == (400, "invalid_request_error")


def test_the_models_server_says_whose_key_is_good(model: Model, agent: MakeAgent) -> None:
    scripted = model(said("x"))
    scripted.script.key = "k"
    running = agent(scripted.url)
    for got in (running.ask("?"), running.send("/v1/models")):
        assert (got.status, got.json["error"]["type"]) == (401, "authentication_error")
        assert got.json["error"]["code"] == "invalid_api_key"
    mine = {"authorization": "Bearer k"}
    assert running.ask("?", headers=mine).text == "x"
    assert running.send("/v1/models", headers=mine).json["data"][0]["id"] == "agent"


def test_a_key_of_the_agents_own_that_is_refused_is_not_the_clients(
    model: Model, agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted = model(said("x"))
    scripted.script.key = "right"
    monkeypatch.setenv("MINE", "wrong")
    running = agent(scripted.url, api_key_env="MINE")
    theirs = {"authorization": "Bearer right"}
    for got in (running.ask("?"), running.ask("?", headers=theirs), running.send("/v1/models", headers=theirs)):
        assert (got.status, got.json["error"]["type"]) == (502, "server_error")
        assert got.json["error"]["code"] == "model_failed"
        assert "The agent's own key (model.api_key_env: MINE) is refused" in got.json["error"]["message"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("before", [[], [{"content": "Well"}]])
def test_a_client_that_leaves_ends_the_models_call(
    model: Model, agent: MakeAgent, stream: bool, before: list[Any]
) -> None:
    scripted = model([*before, "hang"])
    running = agent(scripted.url)
    running.leave(stream=stream, until=scripted.script.hangs.is_set)
    assert scripted.script.left.wait(20)
    wait_for(lambda: running.metric('requests_total{outcome="client_left"}') == 1)
    assert running.metric("requests_in_flight") == 0


@pytest.mark.parametrize(("answer", "status"), [(429, 429), (500, 502), (404, 404), (["cut"], 502), (["error"], 502)])
def test_an_error_before_the_first_event_has_a_status(model: Model, agent: MakeAgent, answer: Any, status: int) -> None:
    got = agent(model(answer).url).ask("?")
    assert got.status == status
    assert got.json["error"]["code"] == "model_failed"
    assert "{" not in got.json["error"]["message"], "what the server said, not how"
    if status == 429:
        assert got.headers["retry-after"] == "7"


def test_a_model_that_is_not_there_and_one_that_breaks_off(model: Model, agent: MakeAgent) -> None:
    assert agent("http://127.0.0.1:9").ask("?").status == 502
    broken = agent(model(wants(SIX_TIMES_SEVEN), [{"content": "It"}, "cut"]).url).ask("?")
    assert broken.status == 200
    assert "Error)" not in broken.raw, "no name of a class"
    assert "error" in broken.events[-1]
    assert "[DONE]" not in broken.raw


@pytest.mark.parametrize(
    ("fields", "status", "word"),
    [
        ({"model": "other"}, 404, "'agent'"),
        ({"tools": [{"type": "function"}]}, 400, "`tools`"),
        ({"n": 2}, 400, "`n`"),
        ({"messages": []}, 400, "$.messages"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, 400, "user's"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "text only"),
    ],
)
def test_requests_that_cannot_be_served(
    model: Model, agent: MakeAgent, fields: dict[str, Any], status: int, word: str
) -> None:
    got = agent(model(said("x")).url).ask("?", **fields)
    assert got.status == status
    assert word in got.json["error"]["message"]


def test_sessions_outlive_the_process_and_are_their_owners(model: Model, agent: MakeAgent, tmp_path: Path) -> None:
    scripted = model(said("Hello Ada."), said("You are Ada."))
    kept = {"sessions": {"path": str(tmp_path / "sessions.db")}}
    mine = {"x-session-id": "s", "authorization": "Bearer a"}
    first = agent(scripted.url, **kept)
    first.ask("I am Ada.", headers=mine)
    assert not first.stop()
    second = agent(scripted.url, **kept)
    assert second.ask("Who am I?", headers=mine).text == "You are Ada."
    heard = [m["content"] for m in scripted.script.asked[1]["messages"]]
    assert heard == ["I am Ada.", "Hello Ada.", "Who am I?"]
    second.ask("Who am I?", headers={**mine, "authorization": "Bearer b"})
    assert [m["content"] for m in scripted.script.asked[2]["messages"]] == ["Who am I?"]
    whole = [{"role": r, "content": c} for r, c in (("user", "I am Ada."), ("assistant", "x"), ("user", "And now?"))]
    second.ask(whole, headers=mine)  # as clients without sessions do it: all of it again
    assert [m["content"] for m in scripted.script.asked[3]["messages"]][-1] == "And now?"
    assert len(scripted.script.asked[3]["messages"]) == 5


def test_a_task_left_in_the_middle_does_not_spoil_its_session(model: Model, agent: MakeAgent) -> None:
    scripted = model(wants(SIX_TIMES_SEVEN), ["cut"], said("Better."))
    running = agent(scripted.url)
    assert "error" in running.ask("6*7?", headers={"x-session-id": "s"}).events[-1]
    assert running.ask("Once more.", headers={"x-session-id": "s"}).text == "Better."
    assert [m["content"] for m in scripted.script.asked[2]["messages"]] == ["Once more."]


def test_one_task_at_a_time_in_a_session(model: Model, agent: MakeAgent) -> None:
    scripted = model(["hang"])
    running = agent(scripted.url, limits={"requests": 2, "seconds": 30})
    body = json.dumps({"model": "agent", "messages": [{"role": "user", "content": "?"}], "session_id": "s"}).encode()
    results: list[int] = []

    def ask_again() -> bool:
        if not scripted.script.hangs.is_set():
            return False
        results.append(running.send("/v1/chat/completions", body).status)
        return True

    import threading  # noqa: PLC0415

    other = threading.Thread(target=running.send, args=("/v1/chat/completions", body))
    other.start()
    wait_for(ask_again)
    assert results == [409]
    scripted.over.set()
    other.join(20)


def test_schema_for_small_models_and_its_answer_streams(model: Model, agent: MakeAgent) -> None:
    call = '{"action": "calculator", "input": "6*7"}'
    answer = [
        {"content": p}
        for p in ('{"action"', ': "answer", "in', 'put": "It is \\', "u0034", "2 \\n\\ud83d", "\\ude00", '."}')
    ]
    scripted = model([{"content": call}], answer)
    got = agent(scripted.url, way="schema").ask("6*7?")
    assert got.text == "It is 42 \n😀."
    assert sum(bool(c["delta"].get("content")) for e in got.events for c in e["choices"]) > 1, "it comes in pieces"
    first, second = scripted.script.asked
    schema = first["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["action"]["enum"] == ["search", "calculator", "answer"]
    assert "tools" not in first
    assert [m["role"] for m in second["messages"]] == ["system", *["user", "assistant"] * 5, "user"]
    assert second["messages"][-1]["content"] == "Result: 42"


@pytest.mark.parametrize("way", ["schema", "native"])
def test_required_holds_for_a_tasks_first_call_alone(model: Model, agent: MakeAgent, way: str) -> None:
    calls = {"schema": [{"content": '{"action": "calculator", "input": "6*7"}'}], "native": wants(SIX_TIMES_SEVEN)}
    answers = {"schema": [{"content": '{"action": "answer", "input": "42"}'}], "native": said("42")}
    scripted = model(calls[way], answers[way])
    assert agent(scripted.url, way=way, tool_choice="required").ask("6*7?").text == "42"
    first, second = scripted.script.asked
    if way == "native":
        assert (first["tool_choice"], second["tool_choice"]) == ("required", "auto")
        return
    enums = [a["response_format"]["json_schema"]["schema"]["properties"]["action"]["enum"] for a in (first, second)]
    assert enums == [["search", "calculator"], ["search", "calculator", "answer"]]


def test_models_health_and_nothing_else(model: Model, agent: MakeAgent) -> None:
    running = agent(model(said("x")).url, name="helper")
    assert running.send("/health").json == {"status": "ok"}
    assert running.send("/v1/models").json["data"][0]["id"] == "helper"
    assert running.send("/nothing").status == 404
    assert running.send("/v1/chat/completions").status == 405
