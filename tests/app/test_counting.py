"""Whose answers are counted by their text: all of them, a sample, or none."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from withstand.app.aloud import AloudTokenizer
from withstand.app.counting import SAMPLE, counted_texts, share_wanted
from withstand.load.texts import TextSink, place_of, text_path
from withstand.spec import Stage, Workload


class Words:
    name = "words"

    def __init__(self, *, exact: bool = True, remote: bool = False) -> None:
        self.exact, self.remote = exact, remote
        self.asked = 0

    def counts(self, texts: Sequence[str]) -> list[int]:
        self.asked += len(texts)
        return [len(text.split()) for text in texts]


class Quiet:
    def step(self, label: str, done: int, total: int | None) -> None:
        pass


def aloud(words: Words) -> AloudTokenizer:
    return AloudTokenizer(words, Quiet())


def stage_with(tokenizer: str, num_prompts: int | None = 1000, **more: object) -> Stage:
    return Stage(workload=Workload(tokenizer=tokenizer), num_prompts=num_prompts, **more)


@pytest.mark.parametrize(
    ("named", "exact", "remote", "share"),
    [
        ("auto", True, True, 1.5 * SAMPLE / 1000),
        ("engine", True, True, 1.5 * SAMPLE / 1000),
        ("auto", False, False, 0.0),
        ("estimate", False, False, 0.0),
        ("tiktoken", False, False, 1.0),
        ("model/tokenizer.json", True, False, 1.0),
    ],
)
def test_the_models_own_and_the_one_that_was_named(named: str, exact: bool, remote: bool, share: float) -> None:
    words = Words(exact=exact, remote=remote)
    assert share_wanted(stage_with(named), aloud(words)) == share
    assert share_wanted(stage_with(named, warmup=True), aloud(words)) == 0.0


def test_few_answers_or_nobody_knows_how_many() -> None:
    engine = aloud(Words(remote=True))
    assert share_wanted(stage_with("auto", 50), engine) == 1.0
    assert share_wanted(stage_with("auto", None, duration_s=5.0), engine) == 1.0


def spooled(folder: Path, count: int, share: float = 1.0, workers: int = 3) -> None:
    sinks = [TextSink(text_path(folder, worker), share) for worker in range(workers)]
    for i in range(count):
        if sinks[i % workers].wants(i):
            sinks[i % workers].append(i, "ein Wörtchen\n" * (i % 5))
    for sink in sinks:
        sink.close()


def test_a_local_tokenizer_counts_every_answer(tmp_path: Path) -> None:
    spooled(tmp_path, 700)
    counts = dict(counted_texts(tmp_path, aloud(Words())))
    assert counts == {i: 2 * (i % 5) for i in range(700)}


def test_an_engine_is_asked_for_a_sample_the_same_one_however_many_workers_there_were(tmp_path: Path) -> None:
    samples = []
    for workers, share in ((1, 1.0), (3, 0.5)):
        folder = tmp_path / str(workers)
        folder.mkdir()
        spooled(folder, 1000, share, workers)
        words = Words(remote=True)
        samples.append(sorted(counted_texts(folder, aloud(words))))
        assert words.asked == len(samples[-1]) == SAMPLE
    assert samples[0] == samples[1]


def test_the_sample_is_spread_over_the_stage() -> None:
    """Of each tenth of 10,000 ids, between 5 and 15 % of the sample."""
    chosen = sorted(range(10_000), key=place_of)[:SAMPLE]
    shares = [sum(i // 1000 == tenth for i in chosen) / SAMPLE for tenth in range(10)]
    assert all(0.05 <= share <= 0.15 for share in shares)


def test_a_line_that_a_death_has_cut_is_none(tmp_path: Path) -> None:
    spooled(tmp_path, 3, workers=1)
    path = text_path(tmp_path, 0)
    path.write_bytes(path.read_bytes()[:-4])
    assert counted_texts(tmp_path, aloud(Words())) == [(0, 0), (1, 2)]


def test_nothing_was_kept(tmp_path: Path) -> None:
    assert counted_texts(tmp_path, aloud(Words())) == []
