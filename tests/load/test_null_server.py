"""The null server in its own process, asked by raw sockets and by our own workers."""

import os
import selectors
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from driving import Drive, asked
from withstand.errors import MeasureError
from withstand.load.null import Begin, NullServer
from withstand.load.null.talk import Tell
from withstand.record import Status
from withstand.wire import Ask

GAP_NS = 5_000_000
RULE = Begin(gap_ns=GAP_NS, tokens=6, near_ns=0)
MS = 1_000_000


@pytest.fixture
def null(tmp_path: Path) -> Iterator[NullServer]:
    with NullServer(tmp_path / "null.log") as server:
        server.begin(RULE)
        yield server


def request(number: int, *, stream: bool = True) -> bytes:
    body = b'{"stream":%s,"messages":[{"content":"calibration %d"}]}' % (b"true" if stream else b"false", number)
    return b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def connected(server: NullServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=10)


def until(sock: socket.socket, end: bytes) -> bytes:
    said = b""
    while not said.endswith(end):
        data = sock.recv(65536)
        assert data, said
        said += data
    return said


def streamed(sock: socket.socket) -> bytes:
    return until(sock, b"data: [DONE]\n\n\r\n0\r\n\r\n")


def test_each_token_is_written_at_its_own_time_and_logged(null: NullServer) -> None:
    with connected(null) as sock:
        sock.sendall(request(7))
        answer = streamed(sock)
    assert answer.count(b'"content":" token"') == 6
    (served,) = null.account().served
    assert (served.number, len(served.began_ns)) == (7, 6)
    assert served.began_ns[0] >= served.arrived_ns + GAP_NS
    assert served.began_ns[-1] >= served.arrived_ns + 6 * GAP_NS
    assert all(began <= ended for began, ended in zip(served.began_ns, served.ended_ns, strict=True))


def test_an_answer_that_is_not_streamed_comes_whole(null: NullServer) -> None:
    with connected(null) as sock:
        for number in (1, 2):
            sock.sendall(request(number, stream=False))
            assert until(sock, b"}}").startswith(b"HTTP/1.1 200 OK")
    assert [s.number for s in null.account().served] == [1, 2]


def test_a_request_in_pieces_is_one(null: NullServer) -> None:
    whole = request(3)
    with connected(null) as sock:
        for piece in (whole[:9], whole[9:-4], whole[-4:]):
            sock.sendall(piece)
        streamed(sock)
    assert [s.number for s in null.account().served] == [3]


def test_who_names_no_number_is_hung_up_on_and_who_leaves_hurts_nobody(null: NullServer) -> None:
    with connected(null) as stranger, connected(null) as leaver, connected(null) as stayer:
        leaver.sendall(request(1))
        stayer.sendall(request(2))
        stranger.sendall(b"GET /v1/models HTTP/1.1\r\n\r\n")
        assert stranger.recv(100) == b""
        leaver.close()
        streamed(stayer)
    assert len({s.number: len(s.began_ns) for s in null.account().served}) == 2


def test_begin_forgets(null: NullServer) -> None:
    with connected(null) as sock:
        sock.sendall(request(1, stream=False))
        until(sock, b"}}")
        null.begin(RULE)
        assert null.account().served == ()


def test_our_workers_see_what_it_wrote(null: NullServer, drive: Drive) -> None:
    requests = asked(8, tokens=6, gap_ns=3 * MS, text="calibration")
    driven = drive(f"http://127.0.0.1:{null.port}", requests, epoch_ns=0)
    account = null.account()
    log = {s.number: s for s in account.served}
    assert [r.status for r in driven.records] == [Status.OK] * 8
    for record in driven.records:
        shown = zip(record.chunk_ns, log[record.id].began_ns, strict=True)
        assert all(stamp_ns >= began_ns - MS for stamp_ns, began_ns in shown)
    assert account.busy_ns > 0
    assert account.late_max_ns >= account.late_p99_ns >= 0


def test_our_workers_read_the_whole_answer(null: NullServer, drive: Drive) -> None:
    requests = asked(5, tokens=1, gap_ns=MS, text="calibration")
    driven = drive(f"http://127.0.0.1:{null.port}", requests, ask=Ask(model="null", stream=False))
    assert [(r.status, r.output_tokens) for r in driven.records] == [(Status.OK, 1)] * 5


def test_it_ends_with_its_host(tmp_path: Path) -> None:
    with NullServer(tmp_path / "null.log") as server:
        pid = server.pid
    assert not Path(f"/proc/{pid}").exists()


def test_its_death_is_told(null: NullServer) -> None:
    os.kill(null.pid, signal.SIGKILL)
    with pytest.raises(MeasureError, match="The null server has ended by itself: exit status -9"):
        null.account()


def test_its_death_in_the_middle_of_its_account_is_told(null: NullServer) -> None:
    """The account is longer than the pipe holds, so that the server waits in the middle of it."""
    null.begin(Begin(gap_ns=1_000, tokens=20_000, near_ns=0))
    with connected(null) as sock:
        sock.sendall(request(1))
        streamed(sock)
    null._child.send(msgspec.json.encode(Tell()))
    with selectors.DefaultSelector() as selector:
        selector.register(null._child, selectors.EVENT_READ)
        assert selector.select(10)
    os.kill(null.pid, signal.SIGKILL)
    os.waitid(os.P_PID, null.pid, os.WEXITED | os.WNOWAIT)  # once we read, it could go on writing until it is gone
    with pytest.raises(MeasureError, match="ended by itself"):
        null.account()


def test_a_server_that_is_stopped_is_not_waited_for_without_end(tmp_path: Path) -> None:
    with NullServer(tmp_path / "null.log", patience_s=5.0) as server:
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(MeasureError, match="has not answered for 5 s"):
            server.account()
        os.kill(server.pid, signal.SIGCONT)
