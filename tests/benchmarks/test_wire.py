"""The wire as a witness. Who may not open a packet socket has none."""

import socket
import time
from collections.abc import Iterator

import pytest
from benchmarks.load.instrument import marked
from benchmarks.load.wire import Wire


def may_watch() -> bool:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0).close()
    except PermissionError:
        return False
    return True


pytestmark = pytest.mark.skipif(not may_watch(), reason="a packet socket needs CAP_NET_RAW")


def posted(number: int) -> bytes:
    return b'POST / HTTP/1.1\r\n\r\n{"truth":"%s"}' % marked(number).encode()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """It takes connections, and reads nothing: a server whose core is busy."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_a_request_is_stamped_when_it_is_sent_however_late_the_server_reads_it(listener: socket.socket) -> None:
    sent_ns: list[tuple[int, int]] = []
    with Wire(listener.getsockname()[1]) as wire:
        for number in range(5):
            with socket.create_connection(listener.getsockname()) as client:
                before_ns = time.monotonic_ns()
                client.sendall(posted(number))
                sent_ns.append((before_ns, time.monotonic_ns()))
    tolerance_ns = 50_000  # of the offset between two clocks
    for number, (before_ns, after_ns) in enumerate(sent_ns):
        assert before_ns - tolerance_ns <= wire.passed_ns[marked(number)] <= after_ns + tolerance_ns


def test_nothing_else_is_taken_for_a_request(listener: socket.socket) -> None:
    with Wire(listener.getsockname()[1]) as wire, socket.create_server(("127.0.0.1", 0)) as other:
        with socket.create_connection(other.getsockname()) as elsewhere:
            elsewhere.sendall(posted(0))
        with socket.create_connection(listener.getsockname()) as client, listener.accept()[0] as accepted:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n" + posted(1))
            accepted.sendall(posted(2))
    assert wire.passed_ns == {}


def test_many_at_once_are_all_seen(listener: socket.socket) -> None:
    count = 5_000
    with (
        Wire(listener.getsockname()[1]) as wire,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as accepted,
    ):
        for number in range(count):
            client.sendall(posted(number))
            accepted.recv(1 << 16)
    assert len(wire.passed_ns) == count
