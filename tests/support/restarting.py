"""An endpoint that is away when it is told to be: every path answers 503, as a gateway without its engine."""

import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import msgspec
import pytest

from one_model import OneModel

AWAY = {"error": {"message": "No engine can be asked at present: connection refused."}}


class Restarting(ThreadingHTTPServer):
    """Tokens are words."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.away = False
        self.refuses_texts: int | None = None
        """With this HTTP status."""
        self.served = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(OneModel):
    server: Restarting

    def asked_for(self, body: bytes) -> None:
        told = msgspec.json.decode(body)
        if self.server.away:
            self.answer(503, AWAY)
        elif not self.path.endswith("/tokenize"):
            self.server.served += 1
            message = {"role": "assistant", "content": "a b"}
            usage = {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}
            choice = {"index": 0, "message": message, "finish_reason": "length"}
            self.answer(200, {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})
        elif self.server.refuses_texts:
            self.answer(self.server.refuses_texts, {"error": {"message": "no texts."}})
        else:
            self.answer(200, {"tokens": list(range(len((told.get("prompt") or told["content"]).split())))})


@pytest.fixture
def restarting() -> Iterator[Restarting]:
    """It serves."""
    with Restarting() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
