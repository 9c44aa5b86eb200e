"""Pages in browsers: who may ask, what their browser is told, and that nothing changes for anybody else."""

from collections.abc import Callable

import pytest

from engines import DONE, END, EVENT, Behave, Engine, answering, chunk, streaming, whole
from gateways import CHAT, Answer, Client, Gateway, body, get, model, post

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
PAGE = "https://chat.example.com"
CORS = f'[cors]\norigins = ["{PAGE}", "http://localhost:3000"]\n'
ORIGIN = f"Origin: {PAGE}\r\n"
ASKS = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type\r\n"
ALLOW = "access-control-allow-origin"


def options(path: str, more: str) -> bytes:
    return f"OPTIONS {path} HTTP/1.1\r\nhost: gateway\r\n{more}\r\n".encode()


def preflight(client: Client, path: str = CHAT, origin: str = PAGE) -> tuple[int, bytes]:
    head = client.send(options(path, f"Origin: {origin}\r\n{ASKS}")).read_until(b"\r\n\r\n")
    return int(head[9:12]), head


def one_allow(answer: Answer) -> str | None:
    assert answer.head.lower().count(ALLOW.encode()) <= 1, "a browser believes neither of two"
    return answer.header(ALLOW)


def test_a_preflight_needs_no_key_and_the_connection_goes_on(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gw = gateway(CORS + model(one.url) + f'[keys.a]\nsha256 = "{"0" * 64}"\n')
    client = gw.client()
    answer = client.send(options(CHAT, ORIGIN + ASKS) + post(body(), more=ORIGIN)).read_until(b"invalid_api_key")
    first, second = answer.split(b"\r\n\r\n")[:2]
    assert first.startswith(b"HTTP/1.1 204 ")
    for line in (
        f"{ALLOW}: {PAGE}",
        "allow-headers: authorization,content-type",
        "allow-methods: GET, POST",
    ):
        assert line.encode() in first
    assert second.startswith(b"HTTP/1.1 401 ")
    assert f"{ALLOW}: {PAGE}".encode() in second  # else the page never learns why
    assert not one.seen


def test_answers_of_all_kinds_may_be_read_and_an_engines_own_lines_are_ours(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering(whole(more=b"Access-Control-Allow-Origin: *\r\naccess-control-allow-credentials: true\r\n")))
    two = engine(streaming(chunk(EVENT), chunk(DONE), END))
    gw = gateway(CORS + model(one.url) + model(two.url, name="s"))
    client = gw.client()
    answer = client.send(post(body(), more=ORIGIN)).answer()
    assert (one_allow(answer), answer.json) == (PAGE, {"ok": True})
    assert answer.header("access-control-allow-credentials") is None
    streamed = client.send(post(body("s", stream=True), more=ORIGIN)).answer()
    assert (one_allow(streamed), streamed.complete) == (PAGE, True)
    assert streamed.raw == chunk(EVENT) + chunk(DONE) + END
    listed = client.send(get("/v1/models", ORIGIN)).answer()
    assert (listed.status, one_allow(listed), len(listed.json["data"])) == (200, PAGE, 2)
    unknown = client.send(post(body("x"), more=ORIGIN)).answer()
    assert (unknown.status, one_allow(unknown)) == (404, PAGE)
    assert one_allow(client.send(post(body())).answer()) == "*"  # no page asks: as the engine has it


def test_a_page_may_also_read_why_it_was_turned_away(engine: Engines, gateway: Gateways) -> None:
    limits = "[limits]\nhead_bytes = 2048\nbody_bytes = 4096\nrequest_s = 0.5\n"
    gw = gateway(CORS + limits + model(engine(answering()).url))
    large = post(body(text="x" * 5000), more=ORIGIN)
    wide = post(body(), more=ORIGIN + f"x-much: {'y' * 3000}\r\n")
    for status, sent in ((413, large), (431, wide), (408, post(body(), more=ORIGIN)[:-5])):
        told = gw.client().send(sent).answer()
        assert (told.status, one_allow(told)) == (status, PAGE)


@pytest.mark.parametrize(("cors", "path", "origin"), [
    (CORS, CHAT, "https://elsewhere.example.com"), (CORS, CHAT, PAGE + ".evil"), (CORS, CHAT, "null"),
    (CORS, "/admin/engines", PAGE), (CORS, "/metrics", PAGE), ("", CHAT, PAGE),
])  # fmt: skip
def test_others_are_told_nothing(cors: str, path: str, origin: str, engine: Engines, gateway: Gateways) -> None:
    gw = gateway(cors + model(engine(answering()).url))
    status, head = preflight(gw.client(), path, origin)
    assert status in {404, 405}  # as for any method that is not there
    assert ALLOW.encode() not in head.lower()
    answer = gw.client().send(get("/v1/models" if path == CHAT else path, f"Origin: {origin}\r\n")).answer()
    assert one_allow(answer) is None


def test_all_may_be_allowed(engine: Engines, gateway: Gateways) -> None:
    gw = gateway('[cors]\norigins = ["*"]\n' + model(engine(answering()).url))
    assert preflight(gw.client(), origin="null")[0] == 204
    assert one_allow(gw.ask(body(), more="Origin: null\r\n")) == "*"


def test_what_a_browsers_client_tries_besides_is_404(engine: Engines, gateway: Gateways) -> None:
    client = gateway(CORS + model(engine(answering()).url)).client()
    for path in ("/api/tags", "/api/version", "/ollama/api/tags", "/v1/nothing"):
        assert client.send(get(path)).answer().status == 404
    assert client.send(post(body(), "/api/chat")).answer().status == 404
