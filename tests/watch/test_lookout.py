"""Looking again and again: each source by itself, at a bounded cost, and at once where that is asked for."""

import threading
import time
from collections.abc import Callable

import pytest

from withstand import clock
from withstand.record import Sample, Seen
from withstand.watch.lookout import Lookout, NothingThereError, Sight, Source

LONG_S = 60.0


def source(name: str, pause_s: float = 0.0) -> Source:
    def look() -> list[Sight]:
        time.sleep(pause_s)
        return [Sight(name, {Seen.RUNNING: 1.0}, "vLLM")]

    return look


def nothing() -> list[Sight]:
    raise NothingThereError


@pytest.fixture
def seen() -> list[Sample]:
    return []


@pytest.fixture
def lookout(seen: list[Sample]) -> Callable[..., Lookout]:
    def make(*sources: Source, interval_s: float = LONG_S, epoch_ns: int = 0) -> Lookout:
        made = Lookout(sources, interval_s, epoch_ns, seen.append)
        made.start()
        return made

    return make


def test_every_source_is_looked_at_when_that_is_asked(lookout: Callable[..., Lookout], seen: list[Sample]) -> None:
    before_ns = clock.now_ns()
    looking = lookout(source("a"), source("b"), nothing, epoch_ns=before_ns)
    assert looking.look_now(10)
    assert {sample.source for sample in seen} == {"a", "b"}
    count = len(seen)
    assert looking.look_now(10)
    assert len(seen) >= count + 2
    assert all(0 <= sample.at_ns <= clock.now_ns() - before_ns for sample in seen)


def test_a_look_that_had_begun_before_is_no_answer(lookout: Callable[..., Lookout], seen: list[Sample]) -> None:
    looking = lookout(source("slow", 0.3))
    time.sleep(0.1)
    asked_ns = clock.now_ns()
    assert looking.look_now(10)
    assert seen[-1].at_ns > asked_ns


def test_a_source_that_hangs_keeps_no_other_waiting(lookout: Callable[..., Lookout], seen: list[Sample]) -> None:
    silence = threading.Event()

    def hangs() -> list[Sight]:
        silence.wait(LONG_S)
        return []

    looking = lookout(hangs, source("a"), interval_s=0.01)
    assert not looking.look_now(0.1)
    until_s = time.monotonic() + 10
    while len(seen) < 5 and time.monotonic() < until_s:
        time.sleep(0.01)
    assert len(seen) >= 5
    silence.set()


def test_what_is_slow_is_asked_seldom_and_what_is_silent_too() -> None:
    looking = Lookout([], 1.0, 0, lambda _: None)
    assert looking.look(source("quick")) == 1.0
    assert looking.look(source("slow", 0.2)) >= 2.0
    assert looking.look(list) == 10.0
    assert looking.look(lambda: [Sight("a", {})]) == 10.0
