"""The loop: who is called, what it knows of its own lateness, and when it may nap."""

import contextlib
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from withstand import clock
from withstand.load.corewait import CoreWait
from withstand.load.loop import Loop
from withstand.load.poller import AT_ONCE, READ
from withstand.record import LOOK_NS

_FAR_NS = 1 << 62


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def test_what_came_while_we_were_busy_may_have_waited(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    loop = Loop(nap_ns=0)
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


def test_what_came_while_we_sent_between_two_looks_may_have_waited(pair: tuple[socket.socket, socket.socket]) -> None:
    """To work and to wait both take time; only who waits sees at once what comes."""
    here, there = pair
    loop = Loop(nap_ns=0)
    late: list[bool] = []
    loop.add(here.fileno(), READ, lambda _: late.append(loop.may_have_waited(clock.now_ns(), clock.now_ns())))
    for _ in range(5):  # a turn in which the host takes the core away looks like one that waited
        there.send(b"x")
        clock.sleep_s(4 * LOOK_NS / 1e9)
        loop.turn(1.0, _FAR_NS)
        here.recv(1)
    loop.close()
    assert late.count(True) >= 3


def test_what_wakes_us_from_a_wait_has_not_waited(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CoreWait, "grown_ns", lambda _: 0)  # on a busy machine we do wait for a core
    monkeypatch.setattr(CoreWait, "turns", lambda _: 1)
    here, there = pair
    loop = Loop(nap_ns=0)
    loop.add(here.fileno(), READ, lambda _: None)
    loop.turn(0.002, _FAR_NS)
    assert not loop.may_have_waited(loop.looked_ns, loop.looked_ns)
    there.send(b"x")
    loop.close()


def test_a_wait_for_a_core_is_that_of_the_turn_in_which_we_slept(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account is read after a wait only: in a turn that found something at once it is that of an older one."""
    monkeypatch.setattr(CoreWait, "grown_ns", lambda _: 10 * LOOK_NS)
    monkeypatch.setattr(CoreWait, "turns", lambda _: 1)
    here, there = pair
    loop = Loop(nap_ns=0)
    waited: list[bool] = []
    loop.add(here.fileno(), READ, lambda _: waited.append(loop.may_have_waited(loop.looked_ns, loop.looked_ns)))
    loop.turn(0.002, _FAR_NS)
    assert loop.may_have_waited(loop.looked_ns, loop.looked_ns)
    there.send(b"x")
    for _ in range(20):  # some turn of them is not kept from its core on the way
        loop.turn(1.0, _FAR_NS)
    loop.close()
    assert False in waited


SPEAKER = """
import socket, sys, time
with socket.socket(fileno=int(sys.argv[1])) as there:
    for pause in range(200):
        there.send(b"x")
        print(time.monotonic_ns())
        time.sleep(pause % 5 * 1e-4)
"""


def test_what_is_found_came_after_the_instant_that_is_told(pair: tuple[socket.socket, socket.socket]) -> None:
    """Whether it woke us, came while we were busy, or both; on whatever machine."""
    here, there = pair
    loop = Loop(nap_ns=0)
    since_ns: list[int] = []

    def found(_events: int) -> None:
        since_ns.extend([loop.since_ns] * len(here.recv(100)))
        clock.sleep_s(len(since_ns) % 3 * LOOK_NS / 1e9)

    loop.add(here.fileno(), READ, found)
    command = [sys.executable, "-c", SPEAKER, str(there.fileno())]
    with subprocess.Popen(command, pass_fds=[there.fileno()], stdout=subprocess.PIPE) as speaker:
        while len(since_ns) < 200:
            loop.turn(1.0, _FAR_NS)
        sent_ns = list(map(int, speaker.communicate()[0].split()))
    loop.close()
    late_ns = [since - sent for since, sent in zip(since_ns, sent_ns, strict=True)]
    assert max(late_ns) < LOOK_NS  # what a host takes away from a virtual core, nobody keeps account of


LISTENER = """
import socket, sys, time
from withstand.load.loop import Loop
from withstand.load.poller import READ
with socket.socket(fileno=int(sys.argv[1])) as here:
    loop = Loop(nap_ns=0)
    loop.add(here.fileno(), READ, lambda _: here.recv(9))
    loop.turn(0.01, 1 << 62)
    print("listens", flush=True)
    loop.turn(9, 1 << 62)
    now_ns = time.monotonic_ns()
    print(loop.since_ns, int(loop.may_have_waited(now_ns, now_ns)))
"""


def test_who_is_stopped_while_he_waits_does_not_know_that_nothing_came(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    here, there = pair
    command = [sys.executable, "-c", LISTENER, str(here.fileno())]
    with subprocess.Popen(command, pass_fds=[here.fileno()], stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        listener.stdout.readline()
        _until_it_is(listener.pid, "S")
        os.kill(listener.pid, signal.SIGSTOP)
        _until_it_is(listener.pid, "T")
        there.send(b"x")
        sent_ns = time.monotonic_ns()
        time.sleep(0.02)
        os.kill(listener.pid, signal.SIGCONT)
        since_ns, may_have_waited = map(int, listener.communicate(timeout=30)[0].split())
    assert since_ns < sent_ns
    assert may_have_waited


def _until_it_is(pid: int, state: str) -> None:
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != state:
        time.sleep(0.001)


@pytest.mark.parametrize(
    ("grown_ns", "known"), [(3 * LOOK_NS, True), (10**9, False), (None, False)], ids=["short", "long", "untold"]
)
def test_after_a_sleep_nothing_is_older_than_the_wait_for_a_core(
    monkeypatch: pytest.MonkeyPatch, grown_ns: int | None, known: bool
) -> None:
    monkeypatch.setattr(CoreWait, "grown_ns", lambda _: grown_ns)
    monkeypatch.setattr(CoreWait, "turns", lambda _: 1)
    loop = Loop(nap_ns=0)
    before_ns = loop.left_ns
    loop.turn(0.02, _FAR_NS)
    loop.close()
    assert loop.since_ns == (loop.looked_ns - 5 * LOOK_NS if known else before_ns)


def _naps(
    monkeypatch: pytest.MonkeyPatch,
    nap_ns: int,
    spare_ns: int,
    busy_ns: int,
    *,
    shortened: bool = False,
    every_ns: int = 0,
    turns: int = 4,
) -> list[float]:
    """How long it slept, in s, where each turn finds 100 events, all of which keep it for ``busy_ns``.

    They have come since the last turn, one ``every_ns``.
    """
    slept: list[float] = []
    now_ns = itertools.count(1)
    ahead_ns = 0

    def keep(_events: int) -> None:
        nonlocal ahead_ns
        ahead_ns += busy_ns // 100

    monkeypatch.setattr(clock, "sleep_s", slept.append)
    monkeypatch.setattr(clock, "now_ns", lambda: next(now_ns) + ahead_ns)
    loop = Loop(nap_ns)
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            here, there = map(stack.enter_context, socket.socketpair())
            there.send(b"x")
            loop.add(here.fileno(), READ, keep)
        for _ in range(turns):
            ahead_ns += 100 * every_ns
            loop.turn(0.0, loop.left_ns + spare_ns)
            if shortened:
                loop.shorten_naps()
    loop.close()
    return slept


@pytest.mark.parametrize(
    ("nap_ns", "spare_ns", "busy_ns", "longest_s"),
    [
        (500_000, _FAR_NS, 0, 0.0005),
        (500_000, 300_000, 0, 0.0002),
        (500_000, 100_000, 0, None),
        (500_000, _FAR_NS, 600_000, None),
        (0, _FAR_NS, 0, None),
    ],
)
def test_it_naps_only_when_it_may_and_nothing_is_due_and_little_is_to_be_done(
    monkeypatch: pytest.MonkeyPatch, nap_ns: int, spare_ns: int, busy_ns: int, longest_s: float | None
) -> None:
    found_s = max(_naps(monkeypatch, nap_ns, spare_ns, busy_ns), default=None)
    assert found_s == (longest_s and pytest.approx(longest_s, abs=1e-8))


def test_naps_grow_shorter_down_to_a_tenth_of_a_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _naps(monkeypatch, 500_000, _FAR_NS, 0, shortened=True) == [0.00025, 0.000125, 0.0001]


@pytest.mark.parametrize(
    ("every_ns", "nap_s"), [(10_000, 0.0005), (99_000, 0.0005), (102_000, 0.0001), (1 << 30, 0.0001)]
)
def test_long_naps_are_for_who_finds_much(monkeypatch: pytest.MonkeyPatch, every_ns: int, nap_s: float) -> None:
    assert _naps(monkeypatch, 500_000, _FAR_NS, 0, every_ns=every_ns, turns=40)[-1] == nap_s


def test_who_never_naps_does_not_begin_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _naps(monkeypatch, 0, _FAR_NS, 0, shortened=True) == []


def test_a_descriptor_that_is_retired_in_a_turn_is_not_reused_in_it(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    loop = Loop(nap_ns=0)
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


def test_what_must_not_wait_goes_before_a_heap_of_what_may() -> None:
    loop, called = Loop(0), list[int]()
    with contextlib.ExitStack() as sockets:
        for place in range(AT_ONCE + 50):
            here, there = map(sockets.enter_context, socket.socketpair())
            loop.add(here.fileno(), READ, lambda _, place=place: called.append(place))
            loop.relax(here.fileno())
            there.send(b"x")
        loop.hurry(here.fileno())
        loop.turn(0.0, 0)
        loop.close()
    assert called[0] == AT_ONCE + 49
    assert AT_ONCE - 1 <= len(called) < AT_ONCE + 50
