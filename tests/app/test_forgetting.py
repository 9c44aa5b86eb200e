"""A server is asked to forget prompts in the way that it knows, and by its own headers."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from withstand.app.forgetting import forgotten
from withstand.spec import Target


@contextmanager
def server(answers: dict[str, tuple[int, object]]) -> Iterator[tuple[str, list[str]]]:
    """What it answers by method and path, and what it was asked."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            asked.append(f"{self.command} {self.path}")
            status, tree = answers.get(asked[-1], (404, {}))
            body = json.dumps(tree).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}", asked
        served.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("answers", "told", "last"),
    [
        ({}, "the server has no reset", "GET /slots"),
        ({"POST /reset_prefix_cache": (200, {})}, "reset by /reset_prefix_cache", "POST /reset_prefix_cache"),
        ({"POST /flush_cache": (200, {})}, "reset by /flush_cache", "POST /flush_cache"),
        ({"POST /flush_cache": (400, {})}, "/flush_cache answered HTTP 400", "POST /flush_cache"),
        ({"GET /slots": (200, {"a": "page"})}, "the server has no reset", "GET /slots"),
        ({"GET /slots": (200, [{"id": 0}])}, "the server has no reset", "POST /slots/0?action=erase"),
        (
            {"GET /slots": (200, [{"id": 0}, {"id": 1}])}
            | {f"POST /slots/{i}?action=erase": (200, {}) for i in range(2)},
            "the slots were erased",
            "POST /slots/1?action=erase",
        ),
    ],
)
def test_each_engine_is_asked_in_its_way(answers: dict[str, tuple[int, object]], told: str, last: str) -> None:
    with server(answers) as (url, asked):
        assert told in forgotten(Target(base_url=f"{url}/v1", model="m"))
    assert asked[-1] == last
