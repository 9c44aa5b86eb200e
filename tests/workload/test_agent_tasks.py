"""Tasks with known answers: drawn, and judged."""

from pathlib import Path
from typing import Any

import pytest

from withstand.errors import DatasetError, SpecError
from withstand.spec import Workload
from withstand.workload import Seed, open_dataset, open_tokenizer
from withstand.workload.dataset import Dataset
from withstand.workload.expected import agrees

SEED = Seed(0, "s")


def dataset(**fields: Any) -> Dataset:
    return open_dataset(Workload(dataset="agent", **fields), open_tokenizer("estimate", None), SEED)


@pytest.mark.parametrize(
    ("answer", "right", "is_right"),
    [
        ("It is 1,274 metres.", "1274", True),
        ("It is 1274.0 m", "1274", True),
        ("**EDDA  Kvarn**", "Edda Kvarn", True),
        ("In 1911.", "11", False),
        ("11.5 months", "11", False),
        ("11, I think", "11", True),
        ("$71.40", "71.40", True),
        ("171.4", "71.4", False),
        ("3.11", "11", False),
        ("", "11", False),
        ("-11", "11", True),
    ],
)
def test_whether_an_answer_holds_what_is_right(answer: str, right: str, is_right: bool) -> None:
    assert agrees(answer, [right, "never"]) is is_right


def test_our_tasks_are_drawn_with_their_answers_and_by_kind() -> None:
    every = list(dataset().sessions())
    assert len(every) == 30
    assert all(session.turns[0].expected for session in every)
    assert len(list(dataset(options={"kinds": ["calculator"]}).sessions())) == 8
    assert len(list(dataset(options={"kinds": "calculator"}).sessions())) == 8, "as a plan's list gives it"
    with pytest.raises(DatasetError, match="there are calculator, search"):
        dataset(options={"kinds": ["poetry"]})
    with pytest.raises(SpecError, match=r"workload\.options"):
        dataset(options={"kind": "x"})


def test_tasks_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"question": "1+1?", "answers": ["2", "two"]}\n')
    (session,) = dataset(path=str(path)).sessions()
    assert session.turns[0].expected == ("2", "two")
    path.write_text('{"question": "1+1?", "answers": []}\n')
    with pytest.raises(DatasetError, match="line 1"):
        dataset(path=str(path))
