"""An endpoint that is away when it is told to be: every path answers 503, as a gateway without its engine."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

AWAY = {"error": {"message": "No engine can be asked at present: connection refused."}}


class Restarting(ThreadingHTTPServer):
    """Tokens are words."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.away = False
        self.refuses_texts = False
        self.served = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet
    server: Restarting

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": "m"}]})

    def do_POST(self) -> None:
        told = msgspec.json.decode(self.rfile.read(int(self.headers["content-length"])))
        if self.server.away:
            self._answer(503, AWAY)
        elif not self.path.endswith("/tokenize"):
            self.server.served += 1
            message = {"role": "assistant", "content": "a b"}
            usage = {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}
            choice = {"index": 0, "message": message, "finish_reason": "length"}
            self._answer(200, {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})
        elif self.server.refuses_texts:
            self._answer(400, {"error": {"message": "no texts."}})
        else:
            self._answer(200, {"tokens": list(range(len((told.get("prompt") or told["content"]).split())))})

    def _answer(self, status: int, tree: Any) -> None:
        body = msgspec.json.encode(tree)
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def restarting() -> Iterator[Restarting]:
    """It serves."""
    with Restarting() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
