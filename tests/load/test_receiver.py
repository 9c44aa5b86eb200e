"""The compiled reader does what the Python one does, and leaves nothing behind."""

import gc
import itertools
import json
import os
import select
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spoken import DIALECT, HEAD, chunk, event, exchange, pieces, take, told
from withstand import clock
from withstand.compiled import compiled
from withstand.load import receiver
from withstand.load.exchange import Exchange
from withstand.load.pacing import Due
from withstand.load.stamps import StampClock, ask_for_stamps
from withstand.request import Message, Request

_receive = compiled("withstand.load._receive", receiver.__file__)
if _receive is None:
    pytest.skip(
        "no compiled reader of this source: install withstand where there is a C compiler", allow_module_level=True
    )
pytestmark = pytest.mark.usefixtures("stamping")
READ = select.POLLIN


class Reading:
    """A connection as far as its receiver knows it, and the one that it reads from."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.sock = socket.create_connection(server.getsockname())
            self.server, _ = server.accept()
        self.sock.setblocking(False)
        self.server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask_for_stamps(self.sock)
        self.stamps = StampClock()
        self.receiver = _receive.Receiver(self.sock.fileno(), self, self.stamps)
        self.exchange = exchange()
        self.calls: list[tuple[Any, ...]] = []

    def take_long_way(self, data: bytes, stamp_ns: int | None, read_ns: int) -> None:
        self.calls.append(("long", data, stamp_ns, read_ns))
        self.exchange.feed(data, stamp_ns or read_ns)
        way = self.exchange.short_way
        if way is None or way.known is None:
            self.receiver.forget()
        else:
            self.receiver.follow(*way.known)

    def took_together(self, events: int, stamp_ns: int, read_ns: int) -> None:
        self.calls.append(("together", events, stamp_ns, read_ns))

    def on_other_events(self, events: int) -> None:
        self.calls.append(("other", events))

    def broke(self, number: int) -> None:
        self.calls.append(("broke", number))

    def hears(self, data: bytes) -> None:
        self.server.sendall(data)
        while not select.select([self.sock], [], [], 10)[0]:
            pass
        self.receiver(READ)

    def close(self) -> None:
        self.receiver = None
        for each in (self.sock, self.server, self.stamps):
            each.close()


@pytest.fixture
def reading(stamping: None) -> Iterator[Reading]:
    made = Reading()
    yield made
    made.close()


def heard(of: Exchange) -> tuple[object, ...]:
    """All but when."""
    stamps_ns, *rest = told(of)
    return len(stamps_ns), *rest  # type: ignore[arg-type]


@given(pieces(), st.lists(st.integers(0, 900), max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
def test_it_counts_what_the_python_one_counts(chunks: list[bytes], cuts: list[int]) -> None:
    stream = HEAD + b"".join(chunks) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    edges = {0, len(stream), len(HEAD), *itertools.accumulate([len(HEAD), *map(len, chunks)]), *cuts}
    reading, python = Reading(), exchange()
    for a, b in itertools.pairwise(sorted(e for e in edges if e <= len(stream))):
        seen = len(reading.calls)
        reading.hears(stream[a:b])
        assert take(python, stream[a:b], a) == (len(reading.calls) == seen), stream[a:b]
    assert heard(reading.exchange) == heard(python)
    reading.close()


@pytest.mark.parametrize("length", [1, 2, 3, 14, 15, 16, 17, 150, 190, 240, 3000, 3900, 4050, 4090, 5000])
def test_chunks_of_all_lengths(reading: Reading, length: int) -> None:
    reading.hears(HEAD)
    python = exchange()
    python.feed(HEAD, 1)
    for _ in range(4):
        data = chunk(event("x" * length))
        seen = len(reading.calls)
        reading.hears(data)
        assert take(python, data, 1) == (len(reading.calls) == seen)
    assert heard(reading.exchange) == heard(python)


def test_chunks_of_one_read_are_counted_together(reading: Reading) -> None:
    reading.hears(HEAD)
    python = exchange()
    python.feed(HEAD, 1)
    odd = chunk(event('a "quoted" word'))
    for data in (*[chunk(event("word"))] * 2, *[b"".join(chunk(event("x" * n)) for n in (1, 20, 3, 300))] * 3):
        reading.hears(data)
        take(python, data, 1)
    assert [call[:2] for call in reading.calls[-3:]] == [("together", 4)] * 3
    assert heard(reading.exchange) == heard(python)
    for data in (chunk(event("word")) * 2 + odd, odd + chunk(event("word")), chunk(event("word")) * 2 + b"c5"):
        seen = len(reading.calls)
        reading.hears(data)
        take(python, data, 1)
        assert [call[:2] for call in reading.calls[seen:]] == [("long", data)], "all of it or nothing"
    assert heard(reading.exchange) == heard(python)


def test_stamps_are_the_kernels_and_their_ages_are_counted(reading: Reading) -> None:
    reading.hears(HEAD)
    before = sum(reading.stamps.ages)
    sent = []
    for _ in range(20):
        sent.append(clock.now_ns())
        reading.hears(chunk(event("word")))
    stamps_ns = reading.exchange.reply.chunk_ns
    assert len(reading.calls) <= 3, "nearly all took the short way"
    for stamp_ns, sent_ns, next_ns in zip(stamps_ns, sent, [*sent[1:], clock.now_ns()], strict=True):
        assert sent_ns - 50_000 <= stamp_ns <= next_ns
    assert sum(reading.stamps.ages) - before <= 20
    assert reading.stamps.ages != [0] * len(reading.stamps.ages)


def test_an_old_stamp_is_settled_by_the_clock(reading: Reading) -> None:
    reading.hears(HEAD)
    reading.hears(chunk(event("word")))
    reading.server.sendall(chunk(event("late")))
    clock.sleep_s(0.02)
    reading.receiver(READ)
    assert reading.exchange.reply.chunk_ns[-1] < clock.now_ns() - 10_000_000
    assert reading.stamps._ages._coarse != [0] * len(reading.stamps._ages._coarse) or sum(reading.stamps.ages) > 0


def test_what_is_not_only_to_be_read_and_what_breaks(reading: Reading) -> None:
    reading.receiver(READ)  # nothing is there
    assert reading.calls == []
    reading.receiver(select.POLLIN | select.POLLHUP)
    reading.server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    reading.server.close()
    clock.sleep_s(0.02)
    reading.receiver(READ)
    assert reading.calls == [("other", select.POLLIN | select.POLLHUP), ("broke", 104)]


def test_the_end_is_read(reading: Reading) -> None:
    reading.server.close()
    clock.sleep_s(0.02)
    reading.receiver(READ)
    assert [call[:2] for call in reading.calls] == [("long", b"")]


def test_what_a_connection_raises_is_raised(reading: Reading) -> None:
    reading.server.close()
    clock.sleep_s(0.02)
    reading.take_long_way = lambda *_: 1 / 0  # type: ignore[method-assign,assignment]
    with pytest.raises(ZeroDivisionError):
        reading.receiver(READ)


def test_who_is_called_with_nonsense_says_so(reading: Reading) -> None:
    for wrong in ((), (1, 2), ("1",)):
        with pytest.raises(TypeError):
            reading.receiver(*wrong)
    with pytest.raises(TypeError):
        reading.receiver.follow("before", b"after", [], [], 1)
    for call in (_receive.Round, _receive.Round(-1).wait, _receive.Round(-1).has, _receive.Round(-1).hand_over):
        with pytest.raises(TypeError):
            call("1")
    with pytest.raises(OSError, match="Bad file"):
        _receive.Round(-1).wait(0.0)
    with pytest.raises(AttributeError):
        _receive.Receiver(0, reading, object())


def test_nothing_is_left_behind(reading: Reading) -> None:
    request = Request(id=0, session=0, messages=(Message(role="user", content="hi"),))  # its texts are not kept
    reading.exchange = Exchange(Due(request, 0, 0), dialect=DIALECT, stream=True, ended=lambda _: None)
    reading.hears(HEAD)
    data = chunk(event("word"))
    for _ in range(50):
        reading.hears(data)
    stamps_ns = reading.exchange.reply.chunk_ns
    tracemalloc.start()
    stamps_ns.clear()
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(2000):
        reading.hears(data)
    stamps_ns.clear()
    reading.calls.clear()
    gc.collect()
    assert tracemalloc.get_traced_memory()[0] - before < 20_000
    tracemalloc.stop()


def test_a_connection_and_its_receiver_are_collected() -> None:
    class Seen(Reading):
        gone = 0

        def __del__(self) -> None:
            Seen.gone += 1

    each = Seen()
    each.hears(HEAD)
    each.sock.close()
    each.server.close()
    each.stamps.close()
    del each
    gc.collect()
    assert Seen.gone == 1


@pytest.mark.parametrize("reader", ["compiled", "python"])
def test_both_read_all_behaviours_rightly(reader: str) -> None:
    command = [sys.executable, "-m", "withstand", "selftest", "--answers", "3", "--format", "json"]
    env = {**os.environ, "WITHSTAND_READER": reader}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=env)
    checks = [check for case in json.loads(done.stdout)["cases"] for check in case["checks"]]
    assert len(checks) > 200
    # Times are right as far as the machine is quiet.
    assert [check for check in checks if not check["ok"] and not check["what"].endswith("_ms")] == []
