"""Datasets: lengths exact, seeds decisive, bad files said in one sentence."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shared import shared
from withstand import plugins
from withstand.errors import DatasetError, SpecError, UsageError
from withstand.request import Request
from withstand.spec import Inf, Poisson, Stage, Trace, Workload
from withstand.workload import Seed, Tokenizer, open_dataset, open_tokenizer, requests


class Words:
    """Splits at blanks: a tokenizer that a test can count with."""

    name = "words"
    exact = True
    remote = False

    def counts(self, texts: list[str]) -> list[int]:
        return [len(text.split()) for text in texts]


TIKTOKEN = open_tokenizer("tiktoken", None)
WORDS = Words()
STAGE = Stage()
SEED = Seed(0, "s")


def made(
    name: str,
    count: int | None = 5,
    *,
    tokenizer: Tokenizer = TIKTOKEN,
    seed: Seed = SEED,
    stage: Stage = STAGE,
    path: Path | None = None,
    **more: Any,
) -> list[Request]:
    fields = {k: more.pop(k) for k in ("repeat", "ignore_eos") if k in more}
    workload = Workload(dataset=name, path=str(path) if path else None, options=more, **fields)
    stage = msgspec.structs.replace(stage, workload=workload, num_prompts=count)
    return list(requests(open_dataset(workload, tokenizer, seed), stage, seed))


def text_of(request: Request) -> str:
    return request.messages[-1].content or ""


def written(tmp_path: Path, data: Any) -> Path:
    path = tmp_path / "data"
    if isinstance(data, bytes):
        path.write_bytes(data)
    else:
        path.write_text(data if isinstance(data, str) else json.dumps(data), "utf-8")
    return path


def test_random_lengths_lie_in_the_range_and_spread() -> None:
    found = made("random", 300, input_len=100, output_len=50, range_ratio=0.2)
    lengths = TIKTOKEN.counts([text_of(r) for r in found])
    assert (min(lengths), max(lengths)) == (80, 120)
    assert lengths == [r.prompt_tokens for r in found]
    assert {r.output_tokens for r in found} == set(range(40, 61))


def test_random_prompts_share_nothing_but_a_prefix_that_is_asked_for() -> None:
    found = [text_of(r).split() for r in made("random", 50, input_len=32)]
    assert len({tuple(words[:4]) for words in found}) == 50
    behind = [text_of(r).split() for r in made("random", 50, input_len=32, prefix_len=16)]
    assert len({tuple(words[:16]) for words in behind}) == 1
    assert len({tuple(words[16:20]) for words in behind}) == 50


def test_synthetic_goes_to_128k_tokens() -> None:
    (found,) = made("synthetic", 1, input_len=128_000, output_len=9)
    assert TIKTOKEN.counts([text_of(found)]) == [128_000]


def test_prefix_repetition_repeats_prefixes() -> None:
    found = [text_of(r).split() for r in made("prefix-repetition", 60, prefix_len=20, suffix_len=10, num_prefixes=3)]
    assert len({tuple(w[:20]) for w in found}) == 3
    assert len({tuple(w[20:]) for w in found}) == 60


SEEDED = """
import sys, msgspec
from withstand.spec import *
from withstand.workload import *
w = Workload(dataset="random", options={"input_len": 40, "range_ratio": 0.5})
s = Stage(workload=w, num_prompts=30, arrivals=Poisson(5.0))
seed = Seed(int(sys.argv[1]), *sys.argv[2:])
for r in requests(open_dataset(w, open_tokenizer("tiktoken", None), seed), s, seed):
    sys.stdout.buffer.write(msgspec.json.encode(r))
"""


def test_the_same_seed_gives_the_same_bytes_in_any_process() -> None:
    def run(*seed: str) -> bytes:
        return subprocess.run([sys.executable, "-c", SEEDED, *seed], capture_output=True, check=True).stdout

    assert run("7", "a") == run("7", "a")
    assert len({run("7", "a"), run("7", "b"), run("8", "a"), run("7", "a", "salt")}) == 4


MADE_UP: dict[str, dict[str, Any]] = {
    "random": {"input_len": 40, "range_ratio": 0.5, "prefix_len": 16},
    "synthetic": {"input_len": 40},
    "prefix-repetition": {"prefix_len": 20, "suffix_len": 20, "num_prefixes": 4},
    "conversations": {"system_len": 20, "first_len": 20, "later_len": 8, "range_ratio": 0.5, "think_s": 1},
}


@pytest.mark.parametrize("name", MADE_UP)
def test_a_salt_changes_every_word_and_nothing_of_the_work(name: str) -> None:
    """Nor does a prefix cache that knows one run know the beginning of any prompt of the other."""
    poisson = Stage(arrivals=Poisson(5.0))
    plain, salted = (made(name, 40, seed=Seed(7, "a", salt), stage=poisson, **MADE_UP[name]) for salt in ("", "4f2a"))
    assert [work_of(r) for r in plain] == [work_of(r) for r in salted]
    heads = [{tuple(text_of(r).split()[:8]) for r in found} for found in (plain, salted)]
    assert not heads[0] & heads[1]


def work_of(request: Request) -> Request:
    return msgspec.structs.replace(request, messages=())


def test_a_salt_shares_alike_what_a_run_shares() -> None:
    """Requests that begin with the same prefix do so whatever the salt."""
    options = MADE_UP["prefix-repetition"]
    runs = [made("prefix-repetition", 40, seed=Seed(7, "a", salt), **options) for salt in ("", "4f2a")]
    heads = [[" ".join(text_of(r).split()[:8]) for r in found] for found in runs]
    assert [one.index(head) for one in heads[:1] for head in one] == [
        other.index(head) for other in heads[1:] for head in other
    ]


def test_a_salt_takes_the_rows_of_a_file_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps([share(("human", f"{LONG} {i}"), ("gpt", LONG)) for i in range(60)]))
    a, b = (made("sharegpt", 30, tokenizer=WORDS, path=path, seed=Seed(0, "a", salt)) for salt in ("", "4f2a"))
    assert {text_of(r) for r in a} != {text_of(r) for r in b}


def share(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"id": "x", "conversations": [{"from": who, "value": text} for who, text in pairs]}


LONG = "many words that are here to be counted "


def test_sharegpt_filters_as_vllm_does(tmp_path: Path) -> None:
    rows = [
        share(("human", LONG), ("gpt", LONG)),
        share(("human", "Hi"), ("gpt", LONG)),
        share(("human", LONG), ("gpt", "no")),
        share(("human", LONG * 200), ("gpt", LONG)),
        share(("human", LONG * 100), ("gpt", LONG * 200)),
        share(("human", LONG)),
        share(("gpt", LONG), ("human", LONG)),
        {"id": "y"},
        {"id": "z", "conversations": [{"from": "human"}, {"from": "gpt", "value": LONG}]},
    ]
    path = written(tmp_path, rows)
    found = made("sharegpt", 2, tokenizer=WORDS, path=path)
    assert {(r.prompt_tokens, r.output_tokens, r.ignore_eos) for r in found} == {(8, 8, False)}
    with pytest.raises(
        DatasetError, match="has 2 usable prompts, 3 were asked for; of 9 rows, 7 were left out"
    ) as told:
        made("sharegpt", 3, tokenizer=WORDS, path=path)
    for reason in ("2 too short", "2 too long", "fewer than two", "not a conversation", "without text"):
        assert reason in str(told.value)
    assert len(made("sharegpt", 4, tokenizer=WORDS, path=path, max_prompt_len=10_000, max_total_len=10_000)) == 4
    assert len(made("sharegpt", 1, tokenizer=WORDS, path=path, questions_only=True)) == 1
    assert made("sharegpt", 3, tokenizer=WORDS, path=path, output_len=3)[0].output_tokens == 3
    assert len(made("sharegpt", 5, tokenizer=WORDS, path=path, repeat=True)) == 5


def test_sharegpt_is_shuffled_by_the_seed(tmp_path: Path) -> None:
    path = written(tmp_path, [share(("human", f"{LONG}{i}"), ("gpt", LONG)) for i in range(30)])
    a, b = (made("sharegpt", 30, tokenizer=WORDS, path=path, seed=Seed(0, s)) for s in ("a", "b"))
    assert {text_of(r) for r in a} == {text_of(r) for r in b}
    assert [text_of(r) for r in a] != [text_of(r) for r in b]


def test_every_oddity_of_the_real_file() -> None:
    path = shared("conversations/sharegpt_oddities_MADE_UP.json")
    with pytest.raises(DatasetError, match="of 13 rows") as told:
        made("sharegpt", 100, path=path)
    usable = int(str(told.value).split(" has ")[1].split()[0])
    assert len(made("sharegpt", usable, path=path)) == usable


def test_a_truncated_file_says_where() -> None:
    path = shared("conversations/sharegpt_truncated_MADE_UP.json")
    with pytest.raises(DatasetError, match=f"at byte {path.stat().st_size}"):
        made("sharegpt", 1, path=path)


def test_openai_jsonl_passes_fields_on(tmp_path: Path) -> None:
    lines = [
        {
            "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u", "name": "n"}],
            "max_tokens": 3,
        },
        {"prompt": "p", "temperature": 0.5, "id": 4},
        {
            "custom_id": "c",
            "body": {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}], "n": 1},
        },
    ]
    path = written(tmp_path, "\n\n".join(json.dumps(line) for line in lines))
    first, second, third = made("openai-jsonl", 3, path=path, shuffle=False)
    assert (first.output_tokens, len(first.messages)) == (3, 2)
    assert dict(first.messages[1].extra) == {"name": msgspec.Raw(b'"n"')}
    assert (text_of(second), dict(second.extra_body)) == ("p", {"temperature": msgspec.Raw(b"0.5")})
    assert third.messages[0].extra["content"] == msgspec.Raw(b'[{"type":"text","text":"x"}]')
    assert set(third.extra_body) == {"n"}


def test_mt_bench_asks_the_second_question_after_the_first(tmp_path: Path) -> None:
    path = written(tmp_path, "\n".join(json.dumps({"question_id": i, "turns": [f"a{i}", f"b{i}"]}) for i in range(3)))
    found = made("mt-bench", 3, path=path)
    assert [(r.session, r.turn, r.last_turn, r.due_ns is None) for r in found] == [
        (s, t, t == 1, t == 1) for s in range(3) for t in range(2)
    ]
    assert [r.id for r in found] == list(range(6))


def test_conversations_give_only_what_is_said_to_the_engine(tmp_path: Path) -> None:
    row = share(("system", "S"), ("human", "q1"), ("gpt", "a1 a1"), ("human", "q2"), ("gpt", "a2"))
    path = written(tmp_path, [row, share(("human", "only"), ("gpt", "one"))])
    found = made("conversations", 1, tokenizer=WORDS, path=path, think_s=2.0, think_distribution="constant")
    assert [[(m.role, m.content) for m in r.messages] for r in found] == [
        [("system", "S"), ("user", "q1")],
        [("user", "q2")],
    ]
    assert [(r.output_tokens, r.think_ns) for r in found] == [(2, 0), (1, 2_000_000_000)]


def test_recorded_agents_keep_their_delays(tmp_path: Path) -> None:
    rows = [
        {"conversation_id": "c", "role": "user", "content": "go", "system": "S", "tools": [{"type": "function"}]},
        {"conversation_id": "c", "role": "assistant", "content": None, "tool_calls": [{"id": 1}]},
        {"conversation_id": "c", "role": "tool", "tool_results": [{"content": "r"}], "delay_seconds": 0.5},
        {"conversation_id": "c", "role": "assistant", "content": "done"},
    ]
    first, second = made("conversations", 1, path=written(tmp_path, "\n".join(map(json.dumps, rows))))
    assert [m.role for m in first.messages] == ["system", "user"]
    assert set(first.extra_body) == {"tools"}
    assert (second.messages[0].role, text_of(second), second.think_ns) == ("user", "r", 500_000_000)


def test_made_up_conversations_may_differ_in_turns_and_lengths() -> None:
    found = made("conversations", 60, turns=4, first_len=20, later_len=10, range_ratio=0.5)
    lengths = TIKTOKEN.counts([text_of(r) for r in found])
    assert lengths == [r.prompt_tokens for r in found]
    assert {r.turn + 1 for r in found if r.last_turn} == {2, 3, 4, 5, 6}
    assert {n for n, r in zip(lengths, found, strict=True) if r.turn} == set(range(5, 16))


def test_conversations_without_a_file_are_made_up() -> None:
    found = made("conversations", 4, turns=3, first_len=30, later_len=10, system_len=12, output_len=5)
    assert len(found) == 12
    assert TIKTOKEN.counts([text_of(r) for r in found]) == [30, 10, 10] * 4
    assert len({r.messages[0].content for r in found if r.turn == 0}) == 1


AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
    "2023-11-16 18:17:03.9799600,48,10\r\n"
    "2023-11-16 18:17:04.0319600,30,8\r\n"
    "2023-11-16 18:17:05.0319600,999,8\r\n"
    "2023-11-16 18:17:06.0319600,10,0"
)


def test_azure_traces_are_played_at_their_times(tmp_path: Path) -> None:
    path = written(tmp_path, AZURE)
    found = made("azure-trace", 3, path=path, stage=Stage(arrivals=Trace(2.0)))
    assert [(r.due_ns, r.prompt_tokens, r.output_tokens) for r in found] == [
        (0, 48, 10),
        (26_000_000, 30, 8),
        (526_000_000, 999, 8),
    ]
    assert TIKTOKEN.counts([text_of(r) for r in found]) == [48, 30, 999]
    with pytest.raises(DatasetError, match=r"1 without tokens.*1 longer than the limit|1 longer.*1 without"):
        made("azure-trace", 4, path=path, max_input_len=500)
    assert [r.due_ns for r in made("azure-trace", 2, path=path, stage=Stage(arrivals=Inf()))] == [0, 0]


def test_a_trace_ends_with_its_stage(tmp_path: Path) -> None:
    stage = Stage(arrivals=Trace(), duration_s=0.5)
    assert len(made("azure-trace", 3, path=written(tmp_path, AZURE), stage=stage)) == 2


def test_mooncake_blocks_are_really_shared(tmp_path: Path) -> None:
    rows = [
        {"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]},
        {"timestamp": 3000, "input_length": 1200, "output_length": 6, "hash_ids": [0, 1, 3]},
        {"timestamp": 3000, "input_length": 600, "output_length": 6, "hash_ids": [9, 1]},
    ]
    path = written(tmp_path, "\n".join(map(json.dumps, rows)))
    found = made("mooncake-trace", 3, path=path, stage=Stage(arrivals=Trace()))
    assert TIKTOKEN.counts([text_of(r) for r in found]) == [1100, 1200, 600]
    assert [r.due_ns for r in found] == [0, 3_000_000_000, 3_000_000_000]
    a, b, c = (text_of(r).split() for r in found)
    assert a[:1024] == b[:1024]
    assert a[1024:1100] != b[1024:1100]
    assert c[:512] != a[:512]
    assert c[512:600] == a[512:600]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("sharegpt", "conversations/oasst_sharegpt_format.json"),
        ("conversations", "conversations/oasst_sharegpt_format.json"),
        ("conversations", "conversations/agentic_coding_multiturn.jsonl"),
        ("sharegpt", "conversations/glaive_toolcall_sharegpt_300.json"),
        ("openai-jsonl", "conversations/bfcl_toolcall_openai.jsonl"),
        ("sonnet", "conversations/sonnet.txt"),
        ("mt-bench", "conversations/mt_bench_questions_80.jsonl"),
        ("azure-trace", "traces/azure_llm_2023_code.csv"),
        ("azure-trace", "traces/burstgpt_documented_rows.csv"),
        ("mooncake-trace", "traces/mooncake_synthetic_trace.jsonl"),
    ],
)
def test_real_files(name: str, path: str) -> None:
    found = made(name, 3, path=shared(path))
    assert len({r.session for r in found}) == 3
    assert all(r.prompt_tokens for r in found)


FROM_FILES = ["sharegpt", "openai-jsonl", "sonnet", "azure-trace", "mooncake-trace", "mt-bench"]
NO_TEXT = [b"", b"  \n", b"\xff\xfe", None]
NO_ROWS = [b"{}", b"[]", b"[1]", b"{broken", b'{"a": 1}\n']
BAD = [(name, data) for name in FROM_FILES for data in (NO_TEXT if name == "sonnet" else NO_TEXT + NO_ROWS)]


@pytest.mark.parametrize(("name", "data"), BAD)
def test_bad_files_are_said_in_one_sentence(tmp_path: Path, name: str, data: bytes | None) -> None:
    path = tmp_path / "none" if data is None else written(tmp_path, data)
    with pytest.raises(DatasetError, match="--dataset-path") as told:
        made(name, 1, path=path)
    assert str(told.value).endswith((".", "?"))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", FROM_FILES)
def test_a_dataset_that_needs_a_file_says_so(name: str) -> None:
    with pytest.raises(DatasetError, match="needs --dataset-path"):
        made(name, 1)


def test_unknown_names_and_options() -> None:
    with pytest.raises(UsageError, match=r"--dataset-name: 'shargpt' is unknown.*sharegpt"):
        made("shargpt")
    with pytest.raises(SpecError, match=r"no option inputlen \(did you mean input_len.* - at `\$\.workload\.options`"):
        made("random", inputlen=3)
    with pytest.raises(SpecError, match=r"at `\$\.workload\.options\.input_len`"):
        made("random", input_len=0)
    with pytest.raises(SpecError, match="random has none"):
        made("random", stage=Stage(arrivals=Trace()))


def test_a_tokenizer_that_is_not_there_is_no_lack_of_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UsageError, match="is no file"):
        open_tokenizer(str(tmp_path / "no-such"), None)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match="install withstand's extra 'tokenizers'"):
        open_tokenizer(str(tmp_path), None)


@pytest.mark.parametrize("name", sorted(plugins.BUILT_IN["datasets"]))
def test_no_dataset_leaves_a_file_unread(name: str) -> None:
    with pytest.raises(UsageError, match="--dataset-path"):
        open_dataset(Workload(dataset=name, path="/no/such/file"), open_tokenizer("estimate", None), SEED)
