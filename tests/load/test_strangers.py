"""Answers that nobody should give: no worker dies of one, and nothing is believed that cannot be."""

import contextlib
import socketserver
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driving import Drive, asked
from withstand.load.connection import READ_BYTES
from withstand.load.tls import TlsPipe, make_context
from withstand.record import Status
from withstand.wire.openai_common import error_text

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@contextlib.contextmanager
def answering(answers: list[bytes]) -> Iterator[str]:
    """The URL of a server that gives one of these to each connection, in turn, and closes it."""
    left = list(answers)

    class Answerer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(2.0)
            if self.request.recv(65536) and left:
                self.request.sendall(left.pop(0))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answerer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    "value", ["Mon, 01 Jan 2020 00:00:00 +99999999999999999", "9" * 400, "Mon, 01 Jan 0001 00:00:00 +2359", "soon"]
)
def test_a_retry_after_that_is_no_time(drive: Drive, value: str) -> None:
    answer = f"HTTP/1.1 429 No\r\nRetry-After: {value}\r\nContent-Length: 0\r\n\r\n".encode()
    with answering([answer]) as url:
        (record,) = drive(url, asked(1)).records
    assert record.status is Status.LIMITED
    assert record.retry_after_s is None or record.retry_after_s < 1e10


@given(st.integers(1, 1000))
def test_an_error_that_is_nested_without_end(depth: int) -> None:
    body = b'{"error":' * depth + b'"deep"' + b"}" * depth
    assert error_text(body)


def test_a_secret_in_a_finish_reason_is_masked(drive: Drive) -> None:
    event = b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"key sk-verysecret1"}]}\n\ndata: [DONE]\n\n'
    with answering([STREAM + event]) as url:
        (record,) = drive(url, asked(1), secrets=("sk-verysecret1",)).records
    assert record.status is Status.OK
    assert "sk-verysecret1" not in repr(record)


@settings(deadline=None)  # the first contexts take long on a busy machine
@given(lengths=st.lists(st.integers(0, 400), max_size=5), data=st.data())
def test_whether_ciphertext_ends_with_a_record_is_known_however_it_is_cut(
    lengths: list[int], data: st.DataObject
) -> None:
    records = [b"\x17\x03\x03" + length.to_bytes(2) + bytes(length) for length in lengths]
    ends = {sum(map(len, records[:i])) for i in range(len(records) + 1)}
    stream = b"".join(records)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    pipe, before = TlsPipe(make_context(None, insecure=True), "localhost"), 0
    for cut in cuts:
        pipe.follow(stream[before:cut])
        assert pipe.whole == (cut in ends)
        before = cut


def spoken(text: bytes, length: int = 0) -> bytes:
    """A whole answer of one token, in so many bytes at least."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %05d\r\n\r\n"
    event = b'data: {"choices":[{"delta":{"content":"%b"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n' % text
    comment = b": %b\n\n" % (b"." * max(0, length - len(head % 0) - len(event) - 4))
    return head % (len(comment) + len(event)) + comment + event


@contextlib.contextmanager
def talkative(behind: bytes) -> Iterator[str]:
    """The URL of a server whose answers fill a read of ours and have something else behind them."""

    class Talker(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(5.0)
            with contextlib.suppress(OSError):
                while self.request.recv(65536):
                    self.request.sendall(spoken(b"asked", READ_BYTES) + behind)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Talker) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_what_an_answer_that_fills_a_read_left_behind_is_not_the_next_answer(drive: Drive) -> None:
    assert len(spoken(b"asked", READ_BYTES)) == READ_BYTES
    with talkative(spoken(b"unasked")) as url:
        records = drive(url, asked(4), cap=1).records
    assert [(r.status, r.text_head) for r in records] == [(Status.OK, "asked")] * 4
    assert all(r.sent_ns is not None and r.chunk_ns[0] > r.sent_ns for r in records)
