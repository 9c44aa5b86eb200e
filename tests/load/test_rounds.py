"""One wait after another: the compiled round does what the Python one does."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from withstand import clock
from withstand.compiled import compiled
from withstand.load import receiver
from withstand.load.poller import AT_ONCE, READ, Poller
from withstand.load.receiver import PythonRound

_receive = compiled("withstand.load._receive", receiver.__file__)
ROUNDS: dict[str, Callable[[Poller], Any]] = {"python": PythonRound}
if _receive is not None:
    ROUNDS["compiled"] = lambda poller: _receive.Round(poller.descriptor)


@pytest.fixture
def poller() -> Iterator[Poller]:
    made = Poller()
    yield made
    made.close()


@pytest.fixture
def pairs(poller: Poller) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    """All of them are watched."""
    made = [socket.socketpair() for _ in range(3)]
    for here, _ in made:
        poller.register(here.fileno(), READ)
    yield made
    for pair in made:
        for each in pair:
            each.close()


@pytest.fixture(params=ROUNDS)
def rounds(request: pytest.FixtureRequest, poller: Poller) -> Any:
    return ROUNDS[request.param](poller)


def handlers(for_pairs: list[tuple[socket.socket, socket.socket]], call: Callable[[int, int], None]) -> list[Any]:
    numbers = [here.fileno() for here, _ in for_pairs]
    return [partial(call, number) if number in numbers else None for number in range(1 + max(numbers))]


def test_who_is_ready_is_called_with_what_there_is(
    rounds: Any, pairs: list[tuple[socket.socket, socket.socket]]
) -> None:
    called: list[tuple[int, int]] = []
    pairs[0][1].send(b"x")
    pairs[2][1].send(b"x")
    assert rounds.wait(1.0) == 2
    assert [rounds.has(here.fileno()) for here, _ in pairs] == [True, False, True]
    rounds.hand_over(handlers(pairs, lambda *call: called.append(call)))
    assert sorted(called) == sorted((pairs[i][0].fileno(), READ) for i in (0, 2))


def test_who_is_gone_by_then_is_not_called(rounds: Any, pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    called: list[int] = []
    for _, there in pairs:
        there.send(b"x")

    def first(number: int, _events: int) -> None:
        called.append(number)
        for here, _ in pairs:
            known[here.fileno()] = None

    known = handlers(pairs, first)
    assert rounds.wait(1.0) == 3
    rounds.hand_over(known)
    assert len(called) == 1
    rounds.hand_over(known[:1])  # nor is who was never there
    assert len(called) == 1


def test_what_a_handler_raises_is_raised(rounds: Any, pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    pairs[0][1].send(b"x")
    rounds.wait(1.0)
    with pytest.raises(ZeroDivisionError):
        rounds.hand_over(handlers(pairs, lambda *_: 1 / 0))


def test_it_waits_as_long_as_was_asked_and_no_longer(rounds: Any) -> None:
    for timeout_s in (0.0, 0.0004, 0.05):
        began_ns = clock.now_ns()
        assert rounds.wait(timeout_s) == 0
        assert clock.now_ns() - began_ns >= timeout_s * 1e9


def test_others_go_on_while_it_waits(rounds: Any, pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    sender = threading.Timer(0.05, pairs[1][1].send, [b"x"])
    sender.start()
    assert rounds.wait(10.0) == 1
    sender.join()


def test_no_more_is_found_at_once_than_there_is_room_for(rounds: Any, poller: Poller) -> None:
    many = [socket.socketpair() for _ in range(AT_ONCE + 10)]
    for here, there in many:
        poller.register(here.fileno(), READ)
        there.send(b"x")
    assert rounds.wait(1.0) == AT_ONCE
    for pair in many:
        for each in pair:
            each.close()


_STOPPED = """
from withstand.load import receiver
from withstand.load.poller import Poller
poller = Poller()
rounds = receiver.round_of(poller)
print("waiting", flush=True)
print(rounds.wait(60.0), flush=True)
"""


@pytest.mark.parametrize("reader", ["compiled", "python"])
def test_to_be_stopped_does_not_end_a_wait(reader: str) -> None:
    """What ends it too early would be taken for a look that found nothing."""
    env = {**os.environ, "WITHSTAND_READER": reader}
    with subprocess.Popen([sys.executable, "-c", _STOPPED], stdout=subprocess.PIPE, env=env) as waiting:
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == b"waiting\n"
        for _ in range(3):
            for what in (signal.SIGSTOP, signal.SIGCONT):
                waiting.send_signal(what)
                clock.sleep_s(0.05)
        assert waiting.poll() is None
        waiting.kill()
        assert waiting.stdout.read() == b""
