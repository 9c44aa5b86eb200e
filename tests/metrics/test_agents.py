"""What an agent made of its tasks, by its steps and our stamps."""

from tests.metrics.conftest import MS, make_answer, make_context

from withstand.metrics.agents import final_ttft_ns, took_ns
from withstand.metrics.summarize import summarize_stage
from withstand.record import Record, Status, Step


def task(id: int = 0, **facts: object) -> Record:  # noqa: A002 - the record's own field
    """Two calls of the model with two tools side by side between them; the answer begins with the fourth event."""
    steps = [
        Step(kind="model", events=3, took_ns=20 * MS, prompt_tokens=100, output_tokens=10),
        Step(kind="tool", name="search", events=3, took_ns=5 * MS),
        Step(kind="tool", name="calculator", ok=False, events=3, took_ns=7 * MS),
        Step(kind="model", events=10, took_ns=30 * MS, prompt_tokens=200, output_tokens=20),
    ]
    return make_answer(id, tokens=10, ttft_ms=10, itl_ms=10, **{"steps": steps, "correct": True, **facts})


def test_the_times_of_a_task() -> None:
    record = task()
    assert took_ns(record, "model") == 50 * MS
    assert took_ns(record, "tool") == 7 * MS
    assert final_ttft_ns(record) == 40 * MS
    assert final_ttft_ns(task(streamed=False)) is None


def test_a_stage_of_tasks() -> None:
    failed = task(2, status=Status.TIMEOUT, correct=False)
    limited = task(3, steps=[Step(kind="limit", name="seconds", ok=False)], correct=False)
    agent = summarize_stage([task(0), task(1, correct=False), failed, limited], make_context(4)).agent
    assert agent is not None
    assert (agent.tasks, agent.solved, agent.success_rate, agent.limited) == (4, 1, 0.25, 1)
    assert agent.tool_calls == {"calculator": 3, "search": 3}
    assert agent.failed_tool_calls == {"calculator": 3}
    assert agent.tokens.percentiles["p50"] == 330
    assert agent.steps.max == 2
    assert agent.model.max == 50
    assert agent.own.min == 100 - 57 if agent.own.n == 2 else agent.own.max == 100


def test_without_an_agent_there_is_nothing_to_tell() -> None:
    assert summarize_stage([make_answer()], make_context(1)).agent is None
