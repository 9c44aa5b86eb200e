"""Agents are compared by what they made of their tasks."""

from random import Random

from msgspec.structs import replace

from compared import records_of, run_of, side_of
from withstand.compare.build import compare
from withstand.compare.shape import Comparison, Row, Verdict
from withstand.record import Record, Step

MS = 1_000_000


def tasks(n: int, *, solved: float, seed: str, steps: int = 2) -> list[Record]:
    """Tasks of which a share is solved, whose model takes 100 ms a call."""
    random = Random(seed)
    calls = [
        Step(kind="model", took_ns=100 * MS + random.randrange(MS), prompt_tokens=90, output_tokens=10)
        for _ in range(steps)
    ]
    told = [*calls[:1], Step(kind="tool", name="search", events=1, took_ns=5 * MS), *calls[1:]]
    records = records_of([random.uniform(200, 300) for _ in range(n)])
    return [replace(record, steps=told, correct=random.random() < solved) for record in records]


def rows(comparison: Comparison) -> dict[str, Row]:
    return {row.metric: row for group in comparison.groups for row in group.rows}


def test_an_agent_that_solves_more_tasks_is_better_and_its_share_has_an_interval() -> None:
    one, other = (run_of(tasks(400, solved=share, seed=str(share))) for share in (0.5, 0.9))
    found = rows(compare([side_of("one", one), side_of("other", other)]))
    row = found["agent_success_rate"]
    assert (row.title, row.unit, row.lower_is_better, row.fastest) == ("Tasks solved", "share", False, 1)
    for cell, share in zip(row.cells, (0.5, 0.9), strict=True):
        assert cell.interval is not None
        assert cell.interval.low is not None
        assert cell.interval.high is not None
        assert cell.interval.low < share < cell.interval.high
        assert cell.n == 400
    difference = row.differences[1]
    assert difference is not None
    assert difference.verdict is Verdict.BETTER


def test_what_a_task_takes_is_compared_too() -> None:
    one, other = (run_of(tasks(60, solved=0.5, seed=str(steps), steps=steps)) for steps in (2, 3))
    found = rows(compare([side_of("one", one), side_of("other", other)]))
    assert [cell.value for cell in found["agent_steps.mean"].cells] == [2, 3]
    assert [cell.value for cell in found["agent_tokens.mean"].cells] == [200, 300]
    assert [round(cell.value or 0, -1) for cell in found["agent_model.mean"].cells] == [200, 300]
    assert found["agent_tools.mean"].cells[0].value == 5
    assert found["agent_final_ttft.p50"].cells[0].value == found["ttft.p50"].cells[0].value + 10
    assert found["agent_steps.mean"].lower_is_better


def test_without_an_agent_nothing_is_told_of_one() -> None:
    run = run_of(records_of([200.0] * 50))
    assert not [key for key in run.estimates if key.startswith("agent_")]
