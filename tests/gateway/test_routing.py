"""Which engine gets a request, on real sockets: what is counted, what engines say, what is drawn by errors."""

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

from engines import PATIENCE_S, Behave, Engine, Seen, Talk, answering, silent, whole
from gateways import Gateway, body, model, post

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]


def metrics_page(text: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(text), text.encode())


def saying(text: str) -> Behave:
    """An engine with a page of metrics."""

    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(metrics_page(text) if seen.head.startswith(b"GET") else whole())

    return behave


def posts(engine: Engine) -> int:
    return sum(seen.head.startswith(b"POST") for seen in engine.seen)


def polls(engine: Engine) -> int:
    return len(engine.seen) - posts(engine)


def until(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.005)


# Sessions and prompts.


def test_a_session_stays_with_its_engine(engine: Engines, gateway: Gateways) -> None:
    engines = [engine(answering()) for _ in range(3)]
    gw = gateway(model(*(e.url for e in engines), more='policy = "session"'))
    client = gw.client()
    for n in range(60):  # of which an engine, whose port draws the lots, gets none once in 10^10 times
        by_header = client.send(post(body(), more=f"x-session-id: s{n}\r\n")).answer().header("x-withstand-engine")
        by_body = client.send(post(body(user=f"s{n}"))).answer().header("x-withstand-engine")
        assert by_header == by_body
    assert all(engines[i].seen for i in range(3))


def test_a_conversation_stays_with_its_engine_and_is_counted(engine: Engines, gateway: Gateways) -> None:
    engines = [engine(answering()) for _ in range(3)]
    gw = gateway(model(*(e.url for e in engines), more='policy = "prefix"'))
    client = gw.client()
    for n in range(6):
        messages = [{"role": "user", "content": f"{n} " * 3000}]
        asked_of = set()
        for turn in range(4):
            asked_of.add(client.send(post(body(messages=messages))).answer().header("x-withstand-engine"))
            messages += [{"role": "assistant", "content": "a"}, {"role": "user", "content": f"{turn}"}]
        assert len(asked_of) == 1
    metrics = gw.metrics()
    share = metrics['prefix_hit_bytes_total{model="m"}'] / metrics['prefix_bytes_total{model="m"}']
    assert 0.7 < share <= 0.75
    assert sum(metrics[f'engine_requests_total{{engine="{e.name}"}}'] for e in engines) == 24


def test_an_engine_without_weight_gets_nothing_until_it_has_some(engine: Engines, gateway: Gateways) -> None:
    main, canary = engine(answering()), engine(answering())
    gw = gateway(model(main.url, canary.url) + "weight = 0\n")
    client = gw.client()
    for _ in range(20):
        client.send(post(body())).answer()
    assert (len(main.seen), len(canary.seen)) == (20, 0)
    place = {"model": "m", "url": canary.url}
    assert gw.control("PATCH", "/admin/engines", {**place, "weight": 1})[0] == 200
    for _ in range(40):
        client.send(post(body())).answer()
    assert canary.seen
    count = len(canary.seen)
    assert gw.control("PATCH", "/admin/engines", {**place, "weight": 0})[0] == 200
    for _ in range(20):
        client.send(post(body())).answer()
    assert len(canary.seen) == count


# Errors that come at once.


@pytest.mark.parametrize("status", [b"503 Service Unavailable", b"500 Internal Server Error", b"429 Too Many Requests"])
def test_an_engine_that_fails_at_once_draws_nothing(engine: Engines, gateway: Gateways, status: bytes) -> None:
    bad, good = engine(answering(whole(b"{}", status))), engine(answering(after_s=0.02))
    gw = gateway(model(bad.url, good.url))
    found: Counter[int] = Counter()

    def ask() -> None:
        client = gw.client()
        found.update(client.send(post(body())).answer().status for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(bad.seen) < 30  # of 160; eight may be on their way before the first has failed
    if status.startswith(b"503"):
        assert found == {200: 160}


# Engines that are asked.


def test_what_others_sent_to_an_engine_counts(engine: Engines, gateway: Gateways) -> None:
    busy = engine(saying("vllm:num_requests_running 40\nvllm:num_requests_waiting 2\n"))
    idle = engine(saying("sglang:num_running_reqs 0\nsglang:num_queue_reqs 0\n"))
    gw = gateway(model(busy.url, idle.url, more="poll = {every_s = 0.05}"))
    gw.until(f'engine_load{{engine="{busy.name}"}}', 42)
    until(lambda: polls(idle) > 1)
    client = gw.client()
    for _ in range(20):
        client.send(post(body())).answer()
    assert (posts(busy), posts(idle)) == (0, 20)
    age_s = gw.metrics()[f'engine_polled_age_seconds{{engine="{busy.name}"}}']
    assert age_s >= 0
    assert gw.control("DELETE", f"/admin/engines?model=m&url={busy.url}")[0] == 200


def test_an_engine_whose_metrics_hang_costs_nothing(engine: Engines, gateway: Gateways) -> None:
    def behave(talk: Talk, seen: Seen) -> None:
        silent(talk, seen) if seen.head.startswith(b"GET") else talk.say(whole())

    hung = engine(behave)
    gw = gateway(model(hung.url, more="poll = true"))
    until(lambda: polls(hung) > 0)
    client = gw.client()
    assert [client.send(post(body())).answer().status for _ in range(20)] == [200] * 20
    assert hung.seen[0].left.wait(PATIENCE_S)
    assert f'engine_polled_age_seconds{{engine="{hung.name}"}}' not in gw.metrics()


@pytest.mark.parametrize("page", [whole(b"{}", b"404 Not Found"), b"SSH-2.0\r\n", metrics_page("up 1\n"), b""])
def test_an_engine_without_metrics_is_one_that_is_not_asked(engine: Engines, gateway: Gateways, page: bytes) -> None:
    def behave(talk: Talk, seen: Seen) -> None:
        talk.say(page if seen.head.startswith(b"GET") else whole())
        if seen.head.startswith(b"GET"):
            talk.sock.close()

    one = engine(behave)
    gw = gateway(model(one.url, more='poll = {every_s = 0.05, path = "/m"}'))
    until(lambda: polls(one) > 2)
    assert one.seen[0].head.startswith(b"GET /m HTTP/1.1\r\n")
    assert gw.ask(body()).status == 200
    assert gw.metrics()[f'engine_load{{engine="{one.name}"}}'] == 0


def test_one_engine_of_a_model_may_be_left_alone(engine: Engines, gateway: Gateways) -> None:
    asked, left = engine(saying("tgi_queue_size 3\n")), engine(saying("tgi_queue_size 3\n"))
    gw = gateway(model(asked.url, left.url, more="poll = true") + "poll = false\n")
    gw.until(f'engine_load{{engine="{asked.name}"}}', 3)
    assert polls(left) == 0
