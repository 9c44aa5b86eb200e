"""The handler of an endpoint that has one model; who inherits says what it answers."""

from http.server import BaseHTTPRequestHandler
from typing import Any

import msgspec


class OneModel(BaseHTTPRequestHandler):
    """Quiet, and in JSON."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(200, {"data": [{"id": "m"}]})

    def do_POST(self) -> None:
        self.asked_for(self.rfile.read(int(self.headers["content-length"])))

    def asked_for(self, body: bytes) -> None:
        raise NotImplementedError

    def answer(self, status: int, tree: Any) -> None:
        body = msgspec.json.encode(tree)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
