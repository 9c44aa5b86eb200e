"""How many tokens an endpoint takes a text for, whichever engine behind it is asked."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import msgspec
import pytest

from one_model import OneModel
from withstand.app.endpoint import Endpoint
from withstand.errors import TargetError
from withstand.load.ask import engine_tokenizer
from withstand.spec import Target
from withstand.testing import TruthServer

TEXT = "one two three"


class Tokenizing(OneModel):
    """Engines in turn: what each takes for the text, or None where it refuses a body without that."""

    forms: ClassVar[list[str]] = []
    asked: ClassVar[int] = 0

    def asked_for(self, body: bytes) -> None:
        told = msgspec.json.decode(body)
        form = self.forms[self.asked % len(self.forms)]
        type(self).asked += 1
        known = {"vllm": {"prompt"}, "strict": {"prompt"}, "llamacpp": {"content"}}[form]
        texts = known & told.keys()
        if form == "vllm" and not texts:
            return self.answer(400, {"error": {"message": "prompt: Field required"}})
        if form == "strict" and "content" in told:
            return self.answer(422, {"error": {"message": "content: Extra inputs are not permitted"}})
        tokens = told[next(iter(texts))].split() if texts else []
        return self.answer(200, {"tokens": list(range(len(tokens)))})


@pytest.fixture
def base_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Tokenizing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    "forms", [["vllm"], ["llamacpp"], ["strict"], ["vllm", "llamacpp"], ["llamacpp", "vllm"]], ids="-".join
)
def test_engines_that_want_the_text_in_different_places_behind_one_name(base_url: str, forms: list[str]) -> None:
    Tokenizing.forms, Tokenizing.asked = forms, 0
    endpoint = Endpoint(Target(base_url=base_url))
    tokenizer = engine_tokenizer(endpoint.asker, endpoint.address, "m")
    assert tokenizer is not None
    counts = tokenizer.counts([TEXT, f"{TEXT} four", f"{TEXT} four five", "six"])
    endpoint.close()
    assert counts == [3, 4, 5, 1]


def test_a_server_that_was_there_is_not_taken_for_a_wrong_url() -> None:
    with TruthServer() as server:
        endpoint = Endpoint(Target(base_url=server.base_url))
        url = server.base_url
    with pytest.raises(TargetError, match="did answer before"):
        endpoint.asker.ask("GET", "/v1/models")
    endpoint.close()
    with pytest.raises(TargetError, match="the URL right"):
        Endpoint(Target(base_url=url))


class NotUtf8(BaseHTTPRequestHandler):
    """Its lists hold a byte that no text has."""

    def do_GET(self) -> None:
        listed = b'{"data": [{"id": "m\xff", "max_model_len": 10}]}'
        self.send_response(200)
        self.send_header("content-length", str(len(listed)))
        self.end_headers()
        self.wfile.write(listed)

    def log_message(self, *_: object) -> None:
        """Not heard."""


def test_a_list_that_is_no_text_lists_nothing() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), NotUtf8) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = Endpoint(Target(base_url=f"http://127.0.0.1:{server.server_port}", model="m"))
        assert (endpoint.models, endpoint.context()) == ([], None)
        endpoint.close()
        server.shutdown()
