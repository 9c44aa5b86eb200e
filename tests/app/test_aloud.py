"""Counting tokens says how far it is, but only when it takes a while, and never beside a running stage."""

import itertools

import pytest

from withstand.app.aloud import AloudTokenizer


class Inner:
    name = "inner"
    exact = True
    remote = False

    def counts(self, texts: list[str]) -> list[int]:
        return [len(text) for text in texts]


class Steps:
    def __init__(self) -> None:
        self.said: list[tuple[int, int | None]] = []

    def step(self, label: str, done: int, total: int | None) -> None:
        self.said.append((done, total))


@pytest.mark.parametrize(("tick_ns", "said"), [(1, []), (600_000_000, [(128, None), (150, None), (150, 150)])])
def test_only_what_takes_a_second_is_told(
    monkeypatch: pytest.MonkeyPatch, tick_ns: int, said: list[tuple[int, int | None]]
) -> None:
    ticks = itertools.count(0, tick_ns)
    monkeypatch.setattr("withstand.app.aloud.clock.now_ns", lambda: next(ticks))
    steps = Steps()
    tokenizer = AloudTokenizer(Inner(), steps)
    tokenizer.begin()
    assert tokenizer.counts(["ab"] * 150) == [2] * 150
    tokenizer.end()
    tokenizer.counts(["ab"] * 500)
    assert steps.said == said
