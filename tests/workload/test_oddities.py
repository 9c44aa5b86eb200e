"""Files as people have them: what is odd is passed over and counted, what is wrong is told with its place."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from withstand.errors import DatasetError
from withstand.request import Request
from withstand.spec import Stage, Trace, Workload
from withstand.workload import Seed, open_dataset, requests

SEED = Seed(0, "s")


class Words:
    """Every word is a token."""

    name = "words"
    exact = True
    remote = False

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


def made(dataset: str, path: Path, count: int, **options: Any) -> list[Request]:
    workload = Workload(dataset=dataset, path=str(path), num_prompts=count, options=options)
    return list(requests(open_dataset(workload, Words(), SEED), Stage(workload=workload), SEED))


def lines(*rows: Any) -> str:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def test_lines_end_at_newlines_and_nowhere_else(path: Path) -> None:
    path.write_text(lines({"prompt": "a\u2028b\u0085c"}, {"prompt": "d"}).replace("\n", "\r\n"), "utf-8", newline="")
    found = made("openai-jsonl", path, 2, shuffle=False)
    assert [r.messages[0].content for r in found] == ["a\u2028b\u0085c", "d"]


def test_tokens_of_what_is_no_text_are_unknown_and_not_none(path: Path) -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}
    path.write_text(lines({"messages": [image]}, {"prompt": "a b"}, {"messages": [image, image]}))
    assert [r.prompt_tokens for r in made("openai-jsonl", path, 3, shuffle=False)] == [None, 2, None]


@pytest.mark.parametrize("length", ["12", 0, 1.5, [1]])
def test_a_wanted_length_that_is_none_is_told_with_its_line(path: Path, length: Any) -> None:
    path.write_text(lines({"prompt": "a", "max_tokens": 5}, {"prompt": "b", "max_tokens": length}))
    with pytest.raises(DatasetError, match="line 2, max_tokens"):
        made("openai-jsonl", path, 1)


def test_a_broken_line_is_told_with_its_column(path: Path) -> None:
    path.write_text('{"prompt": "ä"}\n{"prompt": "ä", oops}\n', "utf-8")
    with pytest.raises(DatasetError, match="line 2, column 18"):
        made("openai-jsonl", path, 1)


@pytest.mark.parametrize("row", [{"messages": ["text"]}, {"messages": [{"content": "x"}]}, {"role": "user"}, {}])
def test_conversations_of_no_messages_are_told_with_their_line(path: Path, row: Any) -> None:
    path.write_text(lines(row))
    with pytest.raises(DatasetError, match="line 1 is no message; conversations needs"):
        made("conversations", path, 1)


def test_conversations_are_read_from_lines_of_messages(path: Path) -> None:
    said = [("user", "q1"), ("assistant", "a b c"), ("user", "q2"), ("assistant", "d")]
    path.write_text(lines({"messages": [{"role": role, "content": text} for role, text in said]}))
    found = made("conversations", path, 1)
    assert [(r.messages[0].content, r.output_tokens, r.last_turn) for r in found] == [("q1", 3, False), ("q2", 1, True)]


def test_one_bad_row_does_not_spoil_a_file_of_conversations(path: Path) -> None:
    good = {"conversations": [{"from": "human", "value": "a b c d"}, {"from": "gpt", "value": "a b c d"}]}
    late = {"conversations": [*good["conversations"], {"from": "function_call", "value": "x"}, {"from": "gpt"}]}
    broken = b'{"conversations": [{"from": "human", "value": "\xff"}]}'
    path.write_bytes(b"\xef\xbb\xbf[" + b",".join([json.dumps(good).encode(), broken, b"null"]) + b"]")
    with pytest.raises(DatasetError, match=r"has 1 usable.*1 not UTF-8 or no JSON, 1 not a conversation"):
        made("sharegpt", path, 2)
    path.write_text(json.dumps([good, late]))
    assert len(made("sharegpt", path, 2)) == 2


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ('[{"conversations": []}]'.encode("utf-16"), "not UTF-8 at byte 0"),
        (b'[{"conversations": oops}]', r"no valid JSON: invalid character at byte 19\."),
        (b'[{"conversations": [', r"at byte 20; is it cut off\?"),
        (b'[{"conversations": "\\ud800 alone"}]', "no valid JSON"),
    ],
)
def test_a_file_that_is_no_json_is_told_with_the_byte(path: Path, data: bytes, told: str) -> None:
    path.write_bytes(data)
    with pytest.raises(DatasetError, match=told):
        made("sharegpt", path, 1)


@pytest.mark.parametrize(
    "cell", ["2023-13-45 00:00:00", "soon", "inf", "nan", '"' + "9" * 200_000 + '"', "", "2023-11-16 18:17:03\0"]
)
def test_a_cell_that_is_no_time_is_told_with_its_line(path: Path, cell: str) -> None:
    path.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n0.5,4,4\n{cell},x,5\n", "utf-8")
    with pytest.raises(DatasetError, match="line 3"):
        made("azure-trace", path, 1)


def test_dates_with_a_zone_are_times(path: Path) -> None:
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,4,4\n2024-05-10 00:00:01+00:00,4,4\n"
    )
    workload = Workload(dataset="azure-trace", path=str(path))
    stage = Stage(workload=workload, arrivals=Trace(), num_prompts=2)
    found = list(requests(open_dataset(workload, Words(), SEED), stage, SEED))
    assert [r.due_ns for r in found] == [0, 990_070_000]


BAILIAN: dict[str, Any] = {"chat_id": 1, "parent_chat_id": -1, "output_length": 3, "type": "text", "turn": 1}


def test_bailian_blocks_have_16_tokens_and_times_in_seconds(path: Path) -> None:
    rows = [
        BAILIAN | {"timestamp": 10.5, "input_length": 40, "hash_ids": [7, 8, 9]},
        BAILIAN | {"timestamp": 12.0, "input_length": 36, "hash_ids": [7, 8]},
        BAILIAN | {"timestamp": 12.5, "input_length": 36, "hash_ids": [7, 8]},
    ]
    path.write_text(lines(*rows))
    workload = Workload(dataset="mooncake-trace", path=str(path))
    stage = Stage(workload=workload, arrivals=Trace(), num_prompts=3)
    found = list(requests(open_dataset(workload, Words(), SEED), stage, SEED))
    assert [r.due_ns for r in found] == [0, 1_500_000_000, 2_000_000_000]
    a, b, c = ((r.messages[0].content or "").split() for r in found)
    assert [len(a), len(b), len(c)] == [40, 36, 36]
    assert a[:32] == b[:32] == c[:32]
    assert len({tuple(text[32:36]) for text in (a, b, c)}) == 3


@pytest.mark.parametrize(
    "odd", [{"timestamp": "x"}, {"hash_ids": 3}, {"hash_ids": ["x"]}, {"input_length": None}, {"timestamp": [1]}]
)
def test_a_trace_line_of_wrong_values_is_told(path: Path, odd: dict[str, Any]) -> None:
    path.write_text(lines({"timestamp": 1, "input_length": 9, "output_length": 9, "hash_ids": [1]} | odd))
    with pytest.raises(DatasetError, match="line 1 holds a wrong value"):
        made("mooncake-trace", path, 1)
