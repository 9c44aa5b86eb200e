"""A service is ready when it answers itself: who else answers at its port is measured by nobody."""

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from pwd import getpwnam
from threading import Event, Thread

import pytest

from stacks import SERVER, command, held, stack, until, up
from withstand.errors import EngineError
from withstand.processes.identity import has_come_of
from withstand.stack.local import bring_up
from withstand.stack.ports import HOST, NOBODY, _answering, free_port, stranger_on
from withstand.stack.state import StackState
from withstand.stack.supervision import Phase

pytestmark = [
    pytest.mark.usefixtures("state"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who listens"),
]

STRAYS = f"""
import os, subprocess, sys, time
if os.fork():
    time.sleep(600)
os.setsid()
if os.fork():
    os._exit(0)
os.execve(sys.executable, [sys.executable, {SERVER!r}, sys.argv[1]], {{}})
"""


@pytest.fixture
def another() -> Iterator[int]:
    """A process that is not ours to ask."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process.pid
        process.kill()


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, HOST), (socket.AF_INET, ""), (socket.AF_INET6, "::")])
def test_who_listens_is_the_keepers_or_a_stranger(family: int, address: str, another: int) -> None:
    port = free_port()
    assert stranger_on(port, lambda pid: has_come_of(pid, os.getppid())) == NOBODY
    with socket.create_server((address, port), family=family, dualstack_ipv6=family is socket.AF_INET6):
        assert stranger_on(port, lambda pid: has_come_of(pid, os.getppid())) is None
        assert f"(pid {os.getpid()})" in (stranger_on(port, lambda pid: has_come_of(pid, another)) or "")


@pytest.mark.parametrize(
    ("one", "other"), [("::ffff:127.0.0.1", "0.0.0.0"), ("0.0.0.0", "::ffff:0.0.0.0"), ("::ffff:0.0.0.0", "::")]
)
@pytest.mark.parametrize("swapped", [False, True])
def test_of_two_that_share_a_port_the_one_who_is_asked_is_known(one: str, other: str, *, swapped: bool) -> None:
    port = free_port()
    first, second = (other, one) if swapped else (one, other)
    with _sharing(first, port) as early, _sharing(second, port) as late, socket.create_connection((HOST, port)):
        [asked], _, _ = select.select([early, late], [], [], 10)
        assert f"socket:[{os.fstat(asked.fileno()).st_ino}]" in _answering(port)


def _sharing(address: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if listener.family is socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    listener.bind((address, port))
    listener.listen()
    return listener


def test_who_listens_at_another_address_is_not_asked(another: int) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.2", port)):
        assert stranger_on(port, lambda pid: pid == another) == NOBODY


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_process_that_ends_while_it_is_looked_into_is_nobody() -> None:
    with subprocess.Popen(["sleep", "600"]) as process, socket.create_server((HOST, 0)) as server:

        def end(event: str, paths: tuple[object, ...]) -> None:
            if event in {"os.listdir", "os.scandir"} and str(paths[0]) == f"/proc/{process.pid}/fd":
                process.kill()
                process.wait()

        sys.addaudithook(end)
        assert stranger_on(server.getsockname()[1], lambda pid: pid == os.getpid()) is None
        assert process.returncode is not None


def test_who_may_not_look_into_a_server_knows_it_by_its_user() -> None:
    nobody, port = getpwnam("nobody"), free_port()

    def asked_by_nobody() -> bytes:
        read, write = os.pipe()
        if (asker := os.fork()) == 0:
            try:
                server.close()
                os.setresuid(nobody.pw_uid, nobody.pw_uid, nobody.pw_uid)
                os.write(write, str(stranger_on(port, lambda pid: pid == os.getpid())).encode())
            finally:
                os._exit(0)
        os.close(write)
        os.waitpid(asker, 0)
        with os.fdopen(read, "rb") as said:
            return said.read()

    with socket.create_server((HOST, port)) as server:
        assert asked_by_nobody() == b"a process of the user root"
        os.fchown(server.fileno(), nobody.pw_uid, -1)
        assert asked_by_nobody() == b"None"


def test_a_server_that_takes_the_port_meanwhile_is_not_measured() -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    port, servers = free_port(), list[ThreadingHTTPServer]()

    def take_it(state: StackState) -> None:
        if state.units[0].phase is Phase.STARTING and not servers:
            servers.append(ThreadingHTTPServer((HOST, port), Answer))
            Thread(target=servers[0].serve_forever).start()

    try:
        with pytest.raises(
            EngineError, match=rf"a does not answer at port {port}: .+ \(pid {os.getpid()}\) has it\. Its logs"
        ):
            bring_up(stack(a=command("0", "600", port=port)), lambda *_: None, take_it)
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def test_a_stranger_who_answers_and_goes_makes_nobody_ready() -> None:
    port = free_port()
    answered = Event()

    def answer_once() -> None:
        listener = socket.create_server((HOST, port))
        connection, _ = listener.accept()
        listener.close()
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
        answered.set()

    stranger = Thread(target=answer_once)
    told = stack(a=command("0", "600", port=port, ready_s=3))

    def come(state: StackState) -> None:
        if state.units[0].phase is Phase.STARTING and not stranger.ident:
            stranger.start()

    with pytest.raises(EngineError, match="a was not ready within 3 s"):
        bring_up(told, lambda *_: None, come)
    assert answered.is_set()


def test_another_service_of_the_stack_does_not_answer_for_one() -> None:
    port = free_port()
    impostor = {"kind": "command", "args": [sys.executable, SERVER, str(port)], "served_as": "m"}
    with pytest.raises(EngineError, match=rf"b does not answer at port {port}: "):
        up(stack(a=impostor, b=command("0", "600", port=port)))


def test_a_server_that_runs_away_from_its_parent_is_still_the_services() -> None:
    strays = {"kind": "command", "args": [sys.executable, "-c", STRAYS, "{port}"], "served_as": "m"}
    assert up(stack(a=strays)).is_up


def test_a_server_that_somebody_starts_for_it_with_its_environment_is_the_services(tmp_path: Path) -> None:
    """As Slurm does: here it is the test."""
    port, told = free_port(), tmp_path / "environment"
    script = f"import os, pathlib, time\npathlib.Path({str(told)!r}).write_text(os.environ['WITHSTAND_STACK'])\n"
    script += "time.sleep(600)"
    servers: list[subprocess.Popen[bytes]] = []

    def start_it() -> None:
        if not servers and told.exists() and (mark := told.read_text()):
            env = {**os.environ, "WITHSTAND_STACK": mark}
            servers.append(subprocess.Popen([sys.executable, SERVER, str(port)], env=env))

    waits = {"kind": "command", "args": [sys.executable, "-c", script], "served_as": "m", "port": port}
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(up, stack(a=waits))
        until(lambda: start_it() or servers)
        assert coming.result().is_up
    servers[0].kill()
    servers[0].wait()


def test_a_port_that_another_stack_waits_for_is_its_own() -> None:
    port = free_port()
    claims = {"kind": "command", "args": [sys.executable, SERVER, "{port}"], "served_as": "m", "port": port}
    listens_elsewhere = {**claims, "args": ["sh", "-c", f"exec {sys.executable} {SERVER} {free_port()}"]}

    def meddle(state: StackState) -> None:
        if state.units[0].phase is Phase.STARTING:
            with pytest.raises(EngineError, match=rf"Port {port} of .*, which a wants, is of the stack 's'"):
                up(stack("other", a=claims))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bring_up(stack(a=listens_elsewhere), lambda *_: None, meddle)
    with held(stack("other", a=claims)) as standing:
        assert standing.is_up
