"""Requests by another path or method than was meant: what there is instead is told, and nobody is misled."""

from collections.abc import Callable

import pytest

from engines import Behave, Engine, answering
from gateways import CHAT, Answer, Gateway, body, get, model, post

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]


def asked(gw: Gateway, method: str, path: str) -> Answer:
    return gw.client().send(get(path).replace(b"GET", method.encode(), 1)).answer()


@pytest.mark.parametrize("path", ["/health", "/ready", "/v1/models", "/v1/models/m", "/metrics", "/docs"])
def test_monitors_may_ask_by_head(gateway: Gateways, nobody: str, path: str) -> None:
    client = gateway(model(nobody)).client()
    client.send(get(path).replace(b"GET", b"HEAD", 1) + get("/health", "connection: close\r\n"))
    said = b""
    while data := client.sock.recv(1 << 16):
        said += data
    first, second, rest = said.split(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 200 "), first
    assert second.startswith(b"HTTP/1.1 200 "), "the next answer begins where the first one's head has ended"
    assert rest == b'{"status":"ok"}'


@pytest.mark.parametrize(
    ("method", "path", "allowed", "said"),
    [
        ("POST", "/ready", "GET, HEAD", "/ready is asked by GET."),
        ("POST", "/docs", "GET, HEAD", "/docs is asked by GET."),
        ("DELETE", "/v1/models/m", "GET, HEAD", "/v1/models/m is asked by GET."),
        ("PUT", "/admin/engines", "GET, POST, PATCH, DELETE, HEAD", "is asked by GET, POST, PATCH or DELETE."),
        ("GET", "/admin/reload", "POST", "/admin/reload is asked by POST."),
        ("GET", CHAT, "POST", f"{CHAT} is asked by POST."),
    ],
)
def test_another_method_is_told_with_the_right_ones(
    gateway: Gateways, nobody: str, method: str, path: str, allowed: str, said: str
) -> None:
    answer = asked(gateway(model(nobody)), method, path)
    assert (answer.status, answer.header("allow")) == (405, allowed)
    assert answer.error["message"].endswith(said)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/chat/completions", "There is no /chat/completions; did you mean /v1/chat/completions? GET /docs lists all"),
        ("/v1/chat/completion", "did you mean /v1/chat/completions?"),
        ("/HEALTH", "did you mean /health?"),
        ("/", "There is no /. GET /docs lists all routes."),
        ("/v1/%63hat/completions", "/v1/chat/completions is found by its plain letters alone; ask for it without %"),
        ("/v1/chat/completions#a", "/v1/chat/completions is found by its plain letters alone; ask for it without %"),
    ],
)
def test_another_path_is_told_with_the_nearest(gateway: Gateways, nobody: str, path: str, said: str) -> None:
    answer = gateway(model(nobody)).ask(body(), path)
    assert (answer.status, said in answer.error["message"]) == (404, True), answer.error


def test_a_path_may_follow_a_scheme_and_host(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    client = gateway(model(one.url)).client()
    for start, rest in (("http://x", CHAT), ("HTTPS://user@elsewhere:1", CHAT + "?a=http://b/c"), ("http://x", CHAT)):
        assert client.send(post(body(), start + rest)).answer().status == 200
        seen = one.seen.pop()
        assert seen.head.startswith(b"POST " + rest.encode() + b" HTTP/1.1\r\nhost: " + one.name.encode() + b"\r\n")
    for path, status in (("http://x/health", 200), ("http://x", 404), ("http://x?/health", 404)):
        assert client.send(get(path)).answer().status == status
    assert client.send(post(body(), "http://x//evil" + CHAT)).answer().status == 404
    assert not one.seen


def test_the_engines_routes_are_described(gateway: Gateways, nobody: str) -> None:
    gw = gateway(model(nobody))
    paths = gw.control("GET", "/openapi.json")[1]["paths"]
    assert paths[CHAT]["post"]["requestBody"]["required"]
    assert "get" in paths["/v1/models"]
    assert asked(gw, "GET", "/docs").raw.decode().count(f"POST {CHAT}<") == 1
