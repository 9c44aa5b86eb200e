"""The loop: who is called, what it knows of its own lateness, and when it may nap."""

import itertools
import socket
from collections.abc import Iterator

import pytest

from withstand import clock
from withstand.load.loop import Loop
from withstand.load.poller import READ
from withstand.record import LOOK_NS

_FAR_NS = 1 << 62


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def test_what_came_while_we_were_busy_may_have_waited(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    loop = Loop(may_nap=False)
    late: list[bool] = []

    def busy_then_fed(_events: int) -> None:
        here.recv(100)
        until_ns = clock.now_ns() + 2 * LOOK_NS
        while clock.now_ns() < until_ns:
            pass
        if not late:
            there.send(b"x")
            late.append(False)
        else:
            late.append(loop.may_have_waited(clock.now_ns(), clock.now_ns()))

    loop.add(here.fileno(), READ, busy_then_fed)
    there.send(b"x")
    loop.turn(1.0, _FAR_NS)
    loop.turn(1.0, _FAR_NS)
    loop.close()
    assert late == [False, True]


def test_what_wakes_us_from_a_wait_has_not_waited(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    loop = Loop(may_nap=False)
    loop.add(here.fileno(), READ, lambda _: None)
    loop.turn(0.002, _FAR_NS)
    assert not loop.may_have_waited(loop.looked_ns, loop.looked_ns)
    there.send(b"x")
    loop.close()


@pytest.mark.parametrize(
    ("may_nap", "spare_ns", "naps"), [(True, _FAR_NS, True), (True, 0, False), (False, _FAR_NS, False)]
)
def test_it_naps_only_when_it_may_and_nothing_is_due(
    monkeypatch: pytest.MonkeyPatch, *, may_nap: bool, spare_ns: int, naps: bool
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(clock, "sleep_s", slept.append)
    ticks = itertools.count(1, 1000)
    monkeypatch.setattr(clock, "now_ns", lambda: next(ticks))
    loop = Loop(may_nap=may_nap)
    for _ in range(3):
        loop.turn(0.0, loop.left_ns + spare_ns)
    loop.close()
    assert bool(slept) == naps


def test_a_descriptor_that_is_retired_in_a_turn_is_not_reused_in_it(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    loop = Loop(may_nap=False)
    numbers: list[int] = []

    def retire(_events: int) -> None:
        number = here.fileno()
        loop.retire(here)
        with socket.socket() as fresh:
            numbers.extend((number, fresh.fileno()))

    loop.add(here.fileno(), READ, retire)
    there.send(b"x")
    loop.turn(1.0, _FAR_NS)
    loop.close()
    assert numbers[0] != numbers[1]
    assert here.fileno() == -1
