"""A dataset and arrivals joined: how many are asked for, what is told before anything is sent, what comes again."""

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from withstand.errors import DatasetError
from withstand.request import Request
from withstand.spec import Arrivals, Constant, Inf, Poisson, Stage, Step, StepPart, Trace, Workload
from withstand.workload import Seed, open_dataset, requests

SECOND_NS = 1_000_000_000


class Words:
    """Every word is a token; remembers how many it has counted."""

    name = "words"
    exact = True
    remote = False

    def __init__(self) -> None:
        self.counted = 0

    def counts(self, texts: Sequence[str]) -> list[int]:
        found = [len(text.split()) for text in texts]
        self.counted += sum(found)
        return found


def stream(workload: Workload, arrivals: Arrivals, tokenizer: Words | None = None, **more: Any) -> Iterator[Request]:
    dataset = open_dataset(workload, tokenizer or Words(), Seed(0, "s"))
    return requests(dataset, Stage(workload=workload, arrivals=arrivals, **more), Seed(0, "s"))


def trace(folder: Path, *rows: tuple[float, int], repeat: bool = False, **options: Any) -> Workload:
    """(Seconds, prompt's tokens) of each row."""
    lines = ["Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"]
    lines += [f"{second},GPT-4,{tokens},9,{tokens + 9},API log" for second, tokens in rows]
    path = folder / "trace.csv"
    path.write_text("\r\n".join(lines))
    return Workload(dataset="azure-trace", path=str(path), repeat=repeat, options=options)


def chats(folder: Path, count: int, **more: Any) -> Workload:
    rows = [
        {"conversations": [{"from": "human", "value": f"a b c d {i}"}, {"from": "gpt", "value": "a b c d"}]}
        for i in range(count)
    ]
    path = folder / "chats.json"
    path.write_text(json.dumps(rows))
    return Workload(dataset="sharegpt", path=str(path), **more)


def test_a_duration_alone_draws_as_long_as_it_lasts() -> None:
    found = list(stream(Workload(options={"input_len": 4}), Poisson(100.0), duration_s=2.0))
    assert 150 < len(found) < 250
    assert all(r.due_ns is not None and r.due_ns < 2 * SECOND_NS for r in found)


def test_made_up_sessions_are_endless_and_lazy() -> None:
    tokenizer = Words()
    endless = stream(Workload(options={"input_len": 4}), Inf(), tokenizer, duration_s=9.0)
    assert len(list(itertools.islice(endless, 1000))) == 1000
    assert tokenizer.counted < 8000


def test_without_a_number_of_its_own_a_stage_has_the_workloads() -> None:
    assert len(list(stream(Workload(num_prompts=7, options={"input_len": 4}), Inf()))) == 7


def test_a_large_trace_is_not_written_before_it_is_sent(tmp_path: Path) -> None:
    tokenizer = Words()
    workload = trace(tmp_path, *[(float(i), 10_000) for i in range(200)])
    next(stream(workload, Trace(), tokenizer, num_prompts=200))
    assert tokenizer.counted < 50_000
    with pytest.raises(DatasetError, match="has 200 usable prompts, 201 were asked for"):
        next(stream(workload, Trace(), num_prompts=201))


def test_a_trace_begins_at_its_first_usable_row(tmp_path: Path) -> None:
    workload = trace(tmp_path, (9.0, 5), (5.0, 99), (7.0, 6), max_input_len=50)
    found = list(stream(workload, Trace(), num_prompts=2))
    assert [(r.due_ns, r.prompt_tokens) for r in found] == [(0, 6), (2 * SECOND_NS, 5)]


def test_a_repeated_trace_goes_on_in_time(tmp_path: Path) -> None:
    workload = trace(tmp_path, (1.0, 5), (3.0, 6), (4.0, 7), repeat=True)
    found = list(stream(workload, Trace(), duration_s=10.0))
    dues_ns = [r.due_ns for r in found]
    assert dues_ns[:6] == [n * SECOND_NS for n in (0, 2, 3, 4, 6, 7)]
    assert [r.prompt_tokens for r in found[:6]] == [5, 6, 7] * 2
    one = trace(tmp_path, (1.0, 5), repeat=True)
    assert [r.due_ns for r in stream(one, Trace(), duration_s=3.0)] == [0, SECOND_NS, 2 * SECOND_NS]


@pytest.mark.parametrize("repeat", [True, False])
@pytest.mark.parametrize("more", [{"num_prompts": 3}, {"duration_s": 3.0}])
def test_a_file_of_which_nothing_is_usable_is_told(tmp_path: Path, repeat: bool, more: dict[str, Any]) -> None:
    workload = chats(tmp_path, 5, repeat=repeat, options={"max_prompt_len": 4})
    with pytest.raises(DatasetError, match=r"of 5 rows, 5 were left out \(5 too long\)"):
        next(stream(workload, Inf(), **more))


def test_rows_come_again_only_when_told(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"Lower --num-prompts to 5, or .*workload\.repeat=true"):
        next(stream(chats(tmp_path, 5), Inf(), num_prompts=12))
    found = [r.messages[0].content for r in stream(chats(tmp_path, 5, repeat=True), Inf(), num_prompts=12)]
    assert found[:5] == found[5:10]
    assert len(set(found)) == 5


def test_what_will_arrive_is_what_must_be_there(tmp_path: Path) -> None:
    """Not what the number alone would ask for."""
    few = chats(tmp_path, 25)
    assert len(list(stream(few, Constant(10.0), num_prompts=1000, duration_s=2.0))) == 20
    assert len(list(stream(few, Step((StepPart(10.0, 2.0),), poisson=False), num_prompts=1000))) == 20
    with pytest.raises(DatasetError, match="25 usable prompts, fewer than arrive within the duration"):
        next(stream(few, Constant(10.0), duration_s=3.0))


def test_how_long_a_closed_loop_lasts_shows_only_as_it_runs(tmp_path: Path) -> None:
    assert len(list(stream(chats(tmp_path, 25), Inf(), duration_s=60.0))) == 25
