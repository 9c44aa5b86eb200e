"""Pieces of streams that go past the interpreter: what goes that way is what came, and nothing else goes."""

import random
import re
import socket
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engines import DONE, END, EVENT, STREAM_HEAD, Behave, Engine, Seen, Talk, chunk, streaming
from gateways import PATIENCE_S, Gateway, body, model, post
from hosted import until
from withstand.gateway import splicing

_splice = splicing._splice
if _splice is None:
    pytest.skip("no splices of this source: install withstand where there is a C compiler", allow_module_level=True)

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]


class Stream:
    """An engine's socket, what reads of it, and a client's."""

    def __init__(self) -> None:
        self.engine, self._link = socket.socketpair()
        self._door, self.client = socket.socketpair()
        for sock in (self._link, self._door, self.client):
            sock.setblocking(False)
        self.remembered: list[bytes] = []
        self.back: list[tuple[bytes, int]] = []
        self.splices = _splice.Splices()
        self.splice = self.join(self.remembered.append)

    def join(self, remember: Callable[[bytes], None]) -> Any:
        return self.splices.join(self._link.fileno(), self._door.fileno(), self, remember)

    def spliced(self, data: bytes, sent: int) -> None:
        self.back.append((data, sent))

    def say(self, data: bytes) -> None:
        self.engine.sendall(data)
        self.splices.turn()

    def heard(self) -> bytes:
        try:
            return self.client.recv(1 << 20)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self.splices.close()
        for sock in (self.engine, self._link, self._door, self.client):
            sock.close()


@pytest.fixture
def stream() -> Iterator[Stream]:
    made = Stream()
    yield made
    made.close()


ORDINARY = (
    chunk(b"a"),
    chunk(EVENT),
    chunk(EVENT) * 3,
    chunk(b"x" * 60_000),
    b"0A\r\n0123456789\r\n",
    b"00001\r\nx\r\n",
)
ODD = (
    END,
    chunk(EVENT) + END,
    chunk(EVENT)[:-1],
    chunk(EVENT) + b"5\r",
    b"1;x\r\na\r\n",
    b"1 \r\na\r\n",
    b"1\n\na\r\n",
    b"2\r\na\r\n",
    b"1\r\na\n\n",
    b"-1\r\na\r\n",
    b"0000001\r\na\r\n",
    b"ffffffffffffffff\r\na\r\n",
    b"\r\n",
    EVENT,
)


@pytest.mark.parametrize("piece", ORDINARY)
def test_whole_chunks_go_on_and_are_remembered(stream: Stream, piece: bytes) -> None:
    for _ in range(3):
        stream.say(piece)
        assert stream.heard() == piece
    assert stream.remembered == [piece] * 3
    assert stream.back == []


@pytest.mark.parametrize("piece", ODD)
def test_what_is_not_ordinary_is_handed_back_whole_and_ends_it(stream: Stream, piece: bytes) -> None:
    stream.say(chunk(b"a"))
    stream.say(piece)
    stream.say(chunk(b"b"))
    assert stream.heard() == chunk(b"a")
    assert stream.back == [(piece, 0)]
    assert stream.remembered == [chunk(b"a")]


@given(st.lists(st.sampled_from([piece for piece in ORDINARY + ODD if len(piece) < 1000]), max_size=12))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_nothing_is_lost_or_said_twice(pieces: list[bytes]) -> None:
    stream = Stream()
    for piece in pieces:
        stream.say(piece)
    data, sent = stream.back[0] if stream.back else (b"", 0)
    on_its_way = stream.heard() + data[sent:]
    stream.engine.close()
    rest = b"".join(iter(lambda: stream._link.recv(1 << 20), b"")) if stream.back else b""
    assert on_its_way + rest == b"".join(pieces)
    stream.close()


def test_a_client_that_does_not_keep_up_gets_the_rest_from_the_link(stream: Stream) -> None:
    piece = chunk(b"x" * 50_000)
    said = 0
    while not stream.back:
        stream.say(piece)
        said += 1
    (data, sent), *more = stream.back
    assert (data, more) == (piece, [])
    assert 0 <= sent < len(piece)
    assert len(stream.remembered) == said - 1
    got = b"".join(iter(stream.heard, b""))
    assert got + data[sent:] == piece * said


def test_an_engine_that_leaves_is_told_after_all_it_has_said(stream: Stream) -> None:
    stream.engine.sendall(chunk(b"last"))
    stream.engine.close()
    stream.splices.turn()
    assert stream.back == [(b"", 0)]
    assert stream.heard() + stream._link.recv(100) == chunk(b"last")


def test_a_client_that_has_left_is_the_links_to_notice(stream: Stream) -> None:
    stream.client.close()
    stream.say(chunk(b"a"))
    assert stream.back == [(chunk(b"a"), 0)]


def test_who_has_ended_it_hears_no_more_of_it(stream: Stream) -> None:
    stream.engine.sendall(chunk(b"a"))
    stream.splice.end()
    stream.splice.end()
    stream.splices.turn()
    assert (stream.heard(), stream.remembered, stream.back) == (b"", [], [])


def test_one_may_end_another_in_the_same_turn() -> None:
    pair = Stream(), Stream()
    ended = []
    for mine, other in (pair, pair[::-1]):
        mine.splice.end()

        def end(piece: bytes, other: Stream = other) -> None:
            ended.append(piece)
            other.splice.end()

        mine.splice = pair[0].splices.join(mine._link.fileno(), mine._door.fileno(), mine, end)
        mine.engine.sendall(chunk(EVENT))
    for _ in range(3):
        pair[0].splices.turn()
    assert ended == [chunk(EVENT)], "the other one was over by then"
    for each in pair:
        each.close()


def test_a_fault_of_ours_is_an_exception_and_keeps_nobody_else_waiting(stream: Stream) -> None:
    stream.splice.end()
    stream.splice = stream.join(lambda _: 1 / 0)
    stream.engine.sendall(chunk(b"a"))
    with pytest.raises(ZeroDivisionError):
        stream.splices.turn()
    with pytest.raises(TypeError):
        type(stream.splice)()
    with pytest.raises(OSError, match="Bad file descriptor"):
        stream.splices.join(-1, -1, stream, stream.remembered.append)


def _waited_for(pid: int) -> int:
    """Streams that are spliced: what the process waits for within what it waits for."""
    at = Path(f"/proc/{pid}")
    told = {path.name: re.findall(r"^tfd: +(\d+)", path.read_text(), re.MULTILINE) for path in at.glob("fdinfo/*")}
    inner = {fd for fds in told.values() for fd in fds if "eventpoll" in str((at / "fd" / fd).readlink())}
    return sum(len(told[fd]) for fd in inner)


def test_a_gateways_streams_are_spliced_and_nothing_is_left_of_them(engine: Engines, gateway: Gateways) -> None:
    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(STREAM_HEAD, *[chunk(EVENT)] * 6, gap_s=0.01)
        talk.wait_for_leave(seen)

    one = engine(behave)
    gw = gateway(model(one.url))
    clients = [gw.client().send(post(body(stream=True))) for _ in range(3)]
    until(lambda: _waited_for(gw.process.pid) == 3, "all three are spliced")
    for client in clients:
        client.close()
    for seen in one.seen:
        assert seen.left.wait(PATIENCE_S), "an engine hears of it also in the midst of a splice"
    assert _waited_for(gw.process.pid) == 0


@pytest.mark.parametrize("how", ["on", "off"])
def test_streams_that_are_cut_anywhere_come_as_they_were_said(
    engine: Engines, gateway: Gateways, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("WITHSTAND_SPLICE", how)
    dice = random.Random(5)
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":40}}\n\n'
    said = b"".join([*(chunk(b"data: " + b"x" * dice.randrange(1, 300) + b"\n\n") for _ in range(40)), chunk(usage)])
    said += chunk(DONE) + END

    def behave(talk: Talk, seen: Seen) -> None:
        cuts = sorted(dice.sample(range(1, len(said)), 12))
        ends = [i + 2 for i in range(len(said)) if said.startswith(b"\n\n\r\n", i)]
        where = sorted({*cuts[: seen.json["n"]], *(i + 2 for i in ends)})
        talk.say(STREAM_HEAD, *(said[a:b] for a, b in pairwise([0, *where, len(said)])), gap_s=0.001)

    one = engine(behave)
    gw = gateway(model(one.url))
    client = gw.client()
    for cuts in (0, 0, 1, 3, 12, 12, 0):
        answer = client.send(post(body(stream=True, n=cuts))).answer()
        assert answer.complete
        assert answer.raw == said
    assert one.connections == 1
    assert gw.metrics()['output_tokens_total{model="m"}'] == 7 * 40


def test_what_breaks_off_in_the_midst_of_a_splice_is_told(engine: Engines, gateway: Gateways) -> None:
    def behave(talk: Talk, _: Seen) -> None:
        talk.say(STREAM_HEAD, *[chunk(EVENT)] * 6, gap_s=0.01)
        talk.reset()

    client = gateway(model(engine(behave).url)).client()
    answer = client.send(post(body(stream=True))).answer()
    assert answer.complete
    assert answer.raw.count(EVENT) == 6
    assert b"broke off" in answer.raw


def test_an_engine_that_stops_in_the_midst_of_a_splice_is_late(engine: Engines, gateway: Gateways) -> None:
    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(STREAM_HEAD, *[chunk(EVENT)] * 20, gap_s=0.05)
        talk.wait_for_leave(seen)

    one = engine(behave)
    client = gateway("[timeouts]\nidle_s = 0.4\n" + model(one.url)).client()
    answer = client.send(post(body(stream=True))).answer()
    assert answer.raw.count(EVENT) == 20, "each piece is progress"
    assert b"has stopped" in answer.raw
    assert one.seen[0].left.wait(PATIENCE_S)


def test_a_stream_of_a_client_that_sleeps_is_spliced_again(engine: Engines, gateway: Gateways) -> None:
    piece = chunk(b"data: " + b"x" * 2000 + b"\n\n")
    one = engine(streaming(*[piece] * 4000, END))
    client = gateway(model(one.url)).client().send(post(body(stream=True)))
    client.read_until(b"data: x")
    time.sleep(0.3)
    assert client.count_until(END) == len(piece) * 4000 + len(END)
