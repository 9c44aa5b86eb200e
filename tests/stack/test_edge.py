"""The edge as nginx really runs it: streams pass as they come, nobody is asked twice, who leaves is gone."""

import re
import ssl
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engines import DONE, END, EVENT, STREAM_HEAD, Behave, Engine, Seen, Talk, answering, chunk, stuck, whole
from gateways import body, get, post
from nginx import PROGRAM, Nginx
from withstand.errors import SpecError
from withstand.spec.stack import Edge, Tls
from withstand.stack.nginx import Behind, nginx_conf
from withstand.stack.ports import free_port
from withstand.testing.certs import make_certificates

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="nginx is not installed")
PATIENCE_S = 30.0


@pytest.fixture
def engine() -> Iterator[Callable[[Behave], Engine]]:
    made: list[Engine] = []

    def make(behave: Behave) -> Engine:
        made.append(Engine(behave))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Callable[..., Nginx]]:
    made: list[Nginx] = []

    def make(*upstreams: str, **told: Any) -> Nginx:
        made.append(Nginx(tmp_path / f"s{len(made)}", msgspec.convert({"workers": 1, **told}, Edge), *upstreams))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_each_piece_passes_before_the_next_is_made(
    engine: Callable[[Behave], Engine], nginx: Callable[..., Nginx]
) -> None:
    heard = threading.Semaphore(0)

    def behave(talk: Talk, _: Seen) -> None:
        talk.say(STREAM_HEAD)
        for i in range(20):
            talk.say(chunk(b"data: %d.\n\n" % i))
            assert heard.acquire(timeout=PATIENCE_S)
        talk.say(chunk(DONE), END)

    client = nginx(engine(behave).url).client().send(post(body()))
    for i in range(20):
        client.read_until(b"data: %d.\n\n" % i)
        heard.release()
    answer = client.answer()
    assert answer.complete
    assert answer.header("x-accel-buffering") == "no"


def test_a_hundred_streams_at_once_come_whole(engine: Callable[[Behave], Engine], nginx: Callable[..., Nginx]) -> None:
    started = threading.Barrier(100, timeout=PATIENCE_S)

    def behave(talk: Talk, seen: Seen) -> None:
        started.wait()  # all of them are open at once
        talk.say(STREAM_HEAD, *(chunk(b"data: %d.\n\n" % i) for i in range(50)), chunk(seen.body), chunk(DONE), END)

    edge = nginx(engine(behave).url, engine(behave).url, workers=2)
    clients = [edge.client().send(post(body(number=i))) for i in range(100)]
    events = b"".join(b"data: %d.\n\n" % i for i in range(50))
    for i, client in enumerate(clients):
        answer = client.answer()
        assert answer.complete
        assert unchunked(answer.raw) == events + body(number=i) + DONE
    assert {line["status"] for line in edge.logged(100)} == {200}


def unchunked(raw: bytes) -> bytes:
    found = b""
    while raw:
        size, _, rest = raw.partition(b"\r\n")
        found, raw = found + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return found


@pytest.mark.parametrize("said", [(), (STREAM_HEAD, chunk(EVENT))])
def test_who_leaves_is_gone_behind_too(
    said: tuple[bytes, ...], engine: Callable[[Behave], Engine], nginx: Callable[..., Nginx]
) -> None:
    behind = engine(stuck(*said))
    edge = nginx(behind.url)
    client = edge.client().send(post(body()))
    if said:
        client.read_until(EVENT)
    else:
        _until_seen(behind)
    client.close()
    assert behind.seen[0].left.wait(PATIENCE_S)
    assert edge.logged(1)[0]["status"] == (200 if said else 499)


def _until_seen(engine: Engine) -> None:
    patience = threading.Event()
    for _ in range(int(PATIENCE_S / 0.02)):
        if engine.seen:
            return
        patience.wait(0.02)
    raise AssertionError("nothing has come")


def test_a_request_that_was_taken_is_never_sent_again(
    engine: Callable[[Behave], Engine], nginx: Callable[..., Nginx]
) -> None:
    def die(talk: Talk, _: Seen) -> None:
        talk.reset()
        raise OSError

    engines = [engine(die), engine(die)]
    answer = nginx(*(each.url for each in engines)).client().send(post(body())).answer()
    assert answer.status == 502
    assert answer.error["type"] == "server_error"
    assert sum(len(each.seen) for each in engines) == 1


def test_one_that_nobody_took_goes_to_another_gateway(
    engine: Callable[[Behave], Engine], nginx: Callable[..., Nginx]
) -> None:
    client = nginx(f"http://127.0.0.1:{free_port()}", gateways=[engine(answering()).url]).client()
    assert [client.send(post(body())).answer().status for _ in range(20)] == [200] * 20


def test_connections_are_kept(engine: Callable[[Behave], Engine], nginx: Callable[..., Nginx]) -> None:
    behind = engine(answering())
    client = nginx(behind.url).client()
    for _ in range(20):
        assert client.send(post(body())).answer().status == 200
    assert behind.connections == 1


def test_a_session_stays_where_it_was(engine: Callable[[Behave], Engine], nginx: Callable[..., Nginx]) -> None:
    engines = [engine(answering()) for _ in range(3)]
    client = nginx(*(each.url for each in engines), balance="hash").client()
    for i in range(24):
        client.send(post(body(session=i % 8), more=f"x-session-id: session-{i % 8}\r\n")).answer()
    homes: dict[int, set[str]] = {}
    for each in engines:
        for seen in each.seen:
            homes.setdefault(seen.json["session"], set()).add(each.name)
    assert len(homes) == 8
    assert {len(names) for names in homes.values()} == {1}


def test_what_it_says_and_passes_on(engine: Callable[[Behave], Engine], nginx: Callable[..., Nginx]) -> None:
    behind = engine(answering(whole(b'{"error":1}', b"429 Too Many", b"retry-after: 7\r\n")))
    edge = nginx(behind.url, max_body_mb=0.5)
    client = edge.client()
    trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
    answer = client.send(post(body(), more=f"traceparent: {trace}\r\nx-request-id: mine\r\n")).answer()
    assert (answer.status, answer.header("retry-after"), answer.raw) == (429, "7", b'{"error":1}')
    client.send(post(body())).answer()
    hidden = client.send(get("/metrics")).answer()
    assert (hidden.status, hidden.error["type"]) == (404, "invalid_request_error")
    passed = "what is below /v1/, /tokenize, /detokenize, /health and /ready"
    assert hidden.error["message"] == f"The edge does not pass this path; it passes {passed}."
    assert "what is below /v1/ and /agent/v1/, /tokenize" in nginx_conf(
        Edge(), Behind((behind.url,), (behind.url,)), (1, 2), root=False, cores=1
    )
    large = client.send(post(b" " * (1 << 20) + b"  ")).answer()
    assert (large.status, large.error["type"]) == (413, "invalid_request_error")
    client.close()  # or nginx waits for the rest of what was too large
    first, second = behind.seen
    assert (first.header("x-request-id"), first.header("traceparent")) == ("mine", trace)
    assert len(second.header("x-request-id") or "") == 32
    logged = edge.logged(4)
    assert (logged[0]["request_id"], logged[0]["traceparent"], logged[0]["status"]) == ("mine", trace, 429)
    assert (logged[2]["status"], logged[2]["upstream_status"], logged[2]["upstream_s"]) == (404, None, None)
    assert logged[0]["upstream"] == behind.name
    assert logged[0]["upstream_header_s"] <= logged[0]["request_s"] + 0.001
    assert not re.search(r"\[(warn|crit|alert|emerg)\]", edge.said)


def test_a_large_body_lands_in_the_stack_s_folder_and_passes(
    engine: Callable[[Behave], Engine], nginx: Callable[..., Nginx]
) -> None:
    behind = engine(answering())
    content = b"x" * (3 << 20)
    assert nginx(behind.url).client().send(post(content)).answer().status == 200
    assert behind.seen[0].body == content


@pytest.mark.parametrize("balance", ["least_conn", "hash", "round_robin"])
def test_nginx_takes_each_form(balance: str, nginx: Callable[..., Nginx]) -> None:
    edge = nginx("http://127.0.0.1:1", balance=balance, gateways=["http://127.0.0.1:2"], max_body_mb=0.5, workers=2)
    done = subprocess.run([*edge.argv, "-t"], capture_output=True, text=True, check=False)
    assert "test is successful" in done.stderr
    assert "[warn]" not in done.stderr


def test_streams_pass_tls(engine: Callable[[Behave], Engine], nginx: Callable[..., Nginx], tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    made = make_certificates(tmp_path)
    behind = engine(answering())
    edge = nginx(behind.url, tls={"certificate": str(made.certificate), "key": str(made.key)})
    context = ssl.create_default_context(cafile=str(made.ca))
    with urllib.request.urlopen(f"https://localhost:{edge.port}/v1/models", context=context, timeout=30) as answer:
        assert answer.status == 200


def test_a_path_that_nginx_would_take_for_a_variable_is_refused() -> None:
    told = Edge(tls=Tls(certificate="/a$b.pem", key="/k.pem"))
    with pytest.raises(SpecError, match=r"\$\.edge\.tls\.certificate"):
        nginx_conf(told, Behind(("http://a:1",)), (1, 2), root=False, cores=1)


@pytest.mark.parametrize(
    "url", ["http://h:8x/", "http://[::1", "http://a:1; server evil:80", "http://a b{;}", "https://x"]
)
def test_what_nginx_cannot_pass_to_is_refused(url: str) -> None:
    with pytest.raises(SpecError, match=rf"http://HOST:PORT alone, not to {re.escape(repr(url))} - at"):
        nginx_conf(Edge(), Behind((url,)), (1, 2), root=False, cores=1)
