"""A client that leaves, seen by the engine's own metrics: whose fault it is that the engine works on."""

import json
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, TCPServer, ThreadingTCPServer
from threading import Event, Thread

from withstand.app.doctor.departures import examine_departures
from withstand.app.doctor.line import Line
from withstand.app.doctor.patient import Dose, Patient
from withstand.app.endpoint import Endpoint
from withstand.doctor.finding import Finding, Verdict
from withstand.spec import Target

_TOKEN_S = 0.005
_CHUNK = b'{"choices": [{"index": 0, "delta": {"content": "x "}}]}'


@contextmanager
def engine(*, tireless: tuple[bool, ...] = ()) -> Iterator[str]:
    """Its gauge tells who runs; a request whose ``stream`` is in ``tireless`` runs on without its client."""
    running: list[object] = []
    over = Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            models = json.dumps({"data": [{"id": "m"}]})
            self._tell(models if self.path == "/v1/models" else f"vllm:num_requests_running {len(running)}\n")

        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stream = bool(told.get("stream"))
            running.append(self)
            try:
                self._answer(stream=stream, tokens=told["max_completion_tokens"], stops=stream not in tireless)
            finally:
                running.remove(self)

        def _answer(self, *, stream: bool, tokens: int, stops: bool) -> None:
            self.close_connection = True
            if stream:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
            for _ in range(tokens):
                left = bool(select.select([self.connection], [], [], 0)[0])
                if over.wait(_TOKEN_S) or (left and stops):
                    return
                if stream and not left:
                    self.wfile.write(b"data: " + _CHUNK + b"\n\n")

        def _tell(self, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    try:
        with _served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
            yield url
    finally:
        over.set()


@contextmanager
def deaf_hop(upstream: str) -> Iterator[str]:
    """It hears its client out, and the engine too, whether the client is still there or not."""
    at = ("127.0.0.1", int(upstream.rpartition(":")[2]))

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            behind = socket.create_connection(at)
            back = Thread(target=_carried, args=(behind, self.request), daemon=True)
            back.start()
            _carried(self.request, behind)
            back.join()
            behind.close()

    ThreadingTCPServer.daemon_threads = True
    with _served(ThreadingTCPServer(("127.0.0.1", 0), Handler)) as url:
        yield url


def _carried(source: socket.socket, sink: socket.socket) -> None:
    """To its source's end, also where nobody takes it any more."""
    with suppress(OSError):
        while data := source.recv(65536):
            with suppress(OSError):
                sink.sendall(data)


@contextmanager
def _served(server: TCPServer) -> Iterator[str]:
    with server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def left(path: str, direct: str, notice_s: float) -> Finding:
    with ExitStack() as stack:
        lines = []
        for url in (path, direct):
            endpoint = stack.enter_context(closing(Endpoint(Target(base_url=url, model="m"))))
            lines.append(stack.enter_context(closing(Line(endpoint))))
        (finding,) = examine_departures(Patient(lines[0], lines[1], None, Dose(notice_s=notice_s)))
    return finding


def test_an_engine_that_stops_at_once() -> None:
    with engine() as url:
        finding = left(url, url, 10)
    assert finding.verdict is Verdict.OK
    assert finding.said.startswith("streaming and not: nothing runs")


def test_an_engine_that_never_stops_is_not_the_hops_fault() -> None:
    with engine(tireless=(False,)) as url:
        finding = left(url, url, 0.5)
    assert finding.verdict is Verdict.DOUBT
    assert finding.said.startswith("not streaming: the engine itself, asked directly, works on")
    assert "not the hop's" in finding.cure


def test_a_hop_that_keeps_an_engine_working_is() -> None:
    with engine() as url, deaf_hop(url) as hop:
        finding = left(hop, url, 0.5)
    assert (finding.verdict, "Have the hop close" in finding.cure) == (Verdict.WRONG, True)
