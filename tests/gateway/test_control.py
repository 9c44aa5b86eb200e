"""The control plane: models, health, metrics, keys, engines that come and go, and the end."""

import hashlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from engines import END, EVENT, STREAM_HEAD, Behave, Engine, Seen, Talk, answering, chunk, silent, stuck
from gateways import Client, Gateway, body, get, model, post

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]


def key(owner: str, secret: str, more: str = "") -> str:
    return f'[keys.{owner}]\nsha256 = "{hashlib.sha256(secret.encode()).hexdigest()}"\n{more}\n'


def bearer(secret: str) -> str:
    return f"Authorization: Bearer {secret}\r\n"


# What there is.


def test_models_and_aliases_are_listed_without_asking_an_engine(gateway: Gateways) -> None:
    gw = gateway('[models."org/m"]\naliases = ["gpt"]\n')
    status, told = gw.control("GET", "/v1/models")
    assert status == 200
    assert [(each["id"], each["root"]) for each in told["data"]] == [("org/m", "org/m"), ("gpt", "org/m")]
    assert gw.control("GET", "/v1/models/org/m")[0] == 200
    assert gw.control("GET", "/v1/models/other")[1]["error"]["code"] == "model_not_found"
    assert gw.control("GET", "/openapi.json")[0] == 200


def test_who_asks_the_control_plane_takes_no_thread(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(model(engine(answering()).url))
    assert gw.control("GET", "/health")[0] == 200
    before = gw.threads()
    for path in ("/v1/models", "/v1/models/m", "/v1/key", "/ready", "/admin/engines"):
        gw.control("GET", path)
    gw.control("DELETE", "/admin/engines?model=m&url=http://127.0.0.1:1")
    assert gw.threads() == before


def test_ready_means_that_somebody_would_answer(engine: Engines, gateway: Gateways) -> None:
    assert gateway("[models.m]\n").control("GET", "/ready")[0] == 503
    gw = gateway(model(engine(answering()).url))
    assert gw.control("GET", "/ready") == (200, {"ready": True, "draining": False, "models": {"m": True}})


def test_unknown_models_make_no_series(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(model(engine(answering(b'HTTP/1.1 200 OK\r\ncontent-length: 23\r\n\r\n{"completion_tokens":7}')).url))
    for i in range(30):
        gw.ask(body(f"made-up-{i}"))
    gw.ask(body())
    metrics = gw.metrics()
    assert not [name for name in metrics if "made-up" in name]
    series = 'requests_total{route="/v1/chat/completions",model="%s",status="%d",outcome="%s"}'
    assert metrics[series % ("", 404, "refused")] == 30
    assert metrics[series % ("m", 200, "ok")] == 1
    assert metrics["hop_seconds_count"] == 1
    assert metrics['hop_seconds_bucket{le="+Inf"}'] == 1
    assert metrics['output_tokens_total{model="m"}'] == 7


def test_answers_whose_tokens_no_engine_tells_are_counted(engine: Engines, gateway: Gateways) -> None:
    told = engine(answering(b'HTTP/1.1 200 OK\r\ncontent-length: 23\r\n\r\n{"completion_tokens":7}'))
    mute = engine(answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"))
    gw = gateway(model(mute.url))
    for path in ("/v1/chat/completions", "/v1/completions", "/tokenize"):
        gw.ask(body(), path=path)
    metrics = gw.metrics()
    assert metrics['without_usage_total{model="m"}'] == 2
    assert not any(name.startswith("output_tokens_total") for name in metrics)
    gw = gateway(model(told.url))
    gw.ask(body())
    assert not any(name.startswith("without_usage_total") for name in gw.metrics())


def test_the_log_has_a_line_for_each_request(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    one = engine(answering())
    gw = gateway(f'[log]\npath = "{tmp_path / "log"}"\n' + model(one.url))
    gw.ask(body(), more="X-Request-Id: r-1\r\n")
    gw.ask(body("other"))
    gw.stop()
    first, second = map(msgspec.json.decode, (tmp_path / "log").read_bytes().splitlines())
    assert (first["request_id"], first["engine"], first["outcome"]) == ("r-1", one.name, "ok")
    assert first["total_ms"] >= first["first_byte_ms"] > 0
    assert (second["model"], second["status"], second["outcome"]) == (None, 404, "refused")


# Keys.


def test_keys_are_asked_for_and_never_passed_on(engine: Engines, gateway: Gateways) -> None:
    one = engine(answering())
    gw = gateway(key("alice", "sk-a") + key("bob", "sk-b", "models = []") + model(one.url))
    assert gw.ask(body()).error["type"] == "authentication_error"
    assert gw.ask(body(), more=bearer("sk-x")).status == 401
    assert gw.control("GET", "/v1/models")[0] == 401
    assert gw.control("GET", "/admin/engines", authorization="Bearer sk-a")[0] == 403
    assert gw.ask(body(), more=bearer("sk-a")).status == 200
    assert gw.ask(body(), more="X-Api-Key: sk-a\r\n").status == 200
    assert gw.ask(body(), more=bearer("sk-b")).status == 404
    assert gw.control("GET", "/v1/models", authorization="Bearer sk-b")[1]["data"] == []
    assert gw.control("GET", "/health")[0] == 200
    assert all("sk-" not in seen.head.decode() for seen in one.seen)


def test_the_engines_key_is_the_gateways(
    engine: Engines, gateway: Gateways, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    one, other = engine(answering()), engine(answering())
    monkeypatch.setenv("ENGINE_KEY", "sk-engine")
    (tmp_path / "secret").write_text("sk-file\n")
    places = model(one.url).rstrip() + '\napi_key_env = "ENGINE_KEY"\n'
    places += model(other.url, name="n").rstrip() + f'\napi_key_file = "{tmp_path / "secret"}"\n'
    gw = gateway(places)
    gw.ask(body(), more=bearer("theirs"))
    gw.ask(body("n"), more=bearer("theirs"))
    assert one.seen[0].header("authorization") == "Bearer sk-engine"
    assert other.seen[0].header("authorization") == "Bearer sk-file"
    assert b"theirs" not in one.seen[0].head + other.seen[0].head


def test_an_engines_key_that_is_not_there_is_missed_at_once(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="environment variable NOT_SET holds no API key"):
        Gateway(tmp_path, model("http://127.0.0.1:1").rstrip() + '\napi_key_env = "NOT_SET"\n')


# Engines that come and go.


def test_engines_are_added_weighed_drained_and_removed(engine: Engines, gateway: Gateways) -> None:
    one, other = engine(answering()), engine(answering())
    gw = gateway(model(one.url, more='policy = "round_robin"\nwarm_up_s = 0'))
    client = gw.client()

    def shares(requests: int) -> tuple[int, int]:
        before = len(one.seen), len(other.seen)
        for _ in range(requests):
            assert client.send(post(body())).answer().status == 200
        return len(one.seen) - before[0], len(other.seen) - before[1]

    assert gw.control("POST", "/admin/engines", {"model": "m", "url": other.url})[0] == 201
    assert gw.control("POST", "/admin/engines", {"model": "m", "url": other.url})[0] == 400
    assert shares(6) == (3, 3)
    assert gw.control("PATCH", "/admin/engines", {"model": "m", "url": one.url, "weight": 3})[1]["weight"] == 3
    assert shares(8) == (6, 2)
    assert gw.control("PATCH", "/admin/engines", {"model": "m", "url": one.url, "draining": True})[0] == 200
    assert shares(4) == (0, 4)
    assert gw.control("PATCH", "/admin/engines", {"model": "m", "url": one.url, "draining": False})[0] == 200
    assert gw.control("DELETE", f"/admin/engines?model=m&url={other.url}")[0] == 200
    assert shares(4) == (4, 0)
    assert [each["engine"] for each in gw.control("GET", "/admin/engines")[1]["m"]] == [one.name]


def test_wrong_orders_are_refused_in_words(gateway: Gateways) -> None:
    gw = gateway("[models.m]\n")
    for told in (
        {},
        {"model": "m", "url": "x"},
        {"model": "m", "url": "http://a", "weight": -1},
        {"model": "n", "url": "http://a"},
    ):
        status, answer = gw.control("POST", "/admin/engines", told)
        assert 400 <= status < 500
        assert answer["error"]["message"].endswith(".")
    assert gw.control("DELETE", "/admin/engines?model=m&url=http://a")[0] == 404


def test_an_engine_that_is_removed_ends_what_it_has_begun(engine: Engines, gateway: Gateways) -> None:
    one = engine(stuck_until_told)
    gw = gateway(model(one.url))
    client = gw.client().send(post(body(stream=True)))
    client.read_until(EVENT)
    assert gw.control("DELETE", f"/admin/engines?model=m&url={one.url}")[0] == 200
    assert gw.ask(body()).status == 503
    one.tell = True  # type: ignore[attr-defined]
    assert client.answer().raw == chunk(EVENT) + END


def stuck_until_told(talk: Talk, _: Seen) -> None:
    talk.say(STREAM_HEAD, chunk(EVENT))
    while not getattr(talk.engine, "tell", False):
        time.sleep(0.01)
    talk.say(END)


def test_a_slow_engine_gets_its_share_and_no_more(engine: Engines, gateway: Gateways) -> None:
    quick, slow = engine(answering(after_s=0.02)), engine(answering(after_s=0.2))
    gw = gateway(model(quick.url, slow.url))

    def ask_on(client: Client) -> None:
        for _ in range(15):
            assert client.send(post(body())).answer().status == 200

    askers = [threading.Thread(target=ask_on, args=(gw.client(),)) for _ in range(8)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    assert len(slow.seen) + len(quick.seen) == 120
    assert len(slow.seen) < 40  # a tenth of the speed, so about a tenth of the work; half of it without the policy


# The end.


def test_sigterm_lets_streams_end(engine: Engines, gateway: Gateways) -> None:
    one = engine(stuck_until_told)
    gw = gateway(model(one.url))
    client, idle = gw.client().send(post(body(stream=True))), gw.client().send(get("/health"))
    client.read_until(EVENT)
    assert idle.answer().status == 200
    gw.terminate()
    assert idle.at_end()
    with pytest.raises(OSError, match="refused"):
        Client(gw.port)
    one.tell = True  # type: ignore[attr-defined]
    answer = client.answer()
    assert answer.raw == chunk(EVENT) + END
    assert client.at_end()
    assert gw.process.wait(10) == 0


def test_what_does_not_end_in_time_is_told_so(engine: Engines, gateway: Gateways) -> None:
    one = engine(stuck(STREAM_HEAD, chunk(EVENT)))
    gw = gateway("drain_s = 0.3\n" + model(one.url, engine(silent).url, more='policy = "round_robin"'))
    first, second = gw.client(), gw.client()
    first.send(post(body(stream=True))).read_until(EVENT)
    second.send(post(body()))
    gw.until("requests_in_flight", 2)
    gw.terminate()
    assert b'data: {"error":' in first.answer().raw
    assert second.answer().status == 503
    assert gw.process.wait(10) == 0
    assert one.seen[0].left.wait(5)
