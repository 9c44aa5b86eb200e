"""Prefill and decode on different engines: what each is sent, and what follows when one of them fails."""

import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from engines import DONE, END, EVENT, STREAM_HEAD, Behave, Engine, Seen, Talk, answering, chunk, hanging_up, silent
from engines import stuck, whole
from gateways import Client, Gateway, body, post
from pd_engines import ANSWER, EVENTS, Nixl, Rooms, generate

Engines = Callable[[Behave], Engine]

STREAM = b"".join(chunk(event) for event in EVENTS) + chunk(DONE) + END
ASKED = {"messages": [{"role": "user", "content": "hi"}]}
UNAVAILABLE = whole(b'{"error":{}}', b"503 Service Unavailable", b"retry-after: 9\r\n")
REFUSED = whole(b'{"error":{"message":"too long"}}', b"400 Bad Request")
LEFT_S = 10.0
AT_ONCE_S = 4.0
"""Less than a prefill may go on whose decode has its answer."""

MODELS = {
    "vllm": 'style = "vllm_nixl"',
    "vllm-alone": 'style = "vllm_nixl"\nfallback = true',
    "vllm-hasty": 'style = "vllm_nixl"\nprefill_s = 0.6',
    "vllm-hasty-alone": 'style = "vllm_nixl"\nprefill_s = 0.6\nfallback = true',
    "vllm-long": 'style = "vllm_nixl"\nmin_prompt_bytes = 300',
    "sglang": 'style = "sglang"',
    "sglang-hasty": 'style = "sglang"\nprefill_s = 0.6',
}


class Place:
    """One gateway for all tests, in which each seats engines of its own, and what they have done to its counters."""

    def __init__(self, gw: Gateway) -> None:
        self.gw = gw
        self.model = ""
        self._names: list[str] = []
        self._urls: list[str] = []
        self._before: dict[str, float] = {}

    def seat(self, model: str, prefills: list[Any], decodes: list[Any], **prefill_has: object) -> "Place":
        self.model, self._before = model, self.gw.metrics()
        for role, engines in (("prefill", prefills), ("decode", decodes)):
            for each in engines:
                url = each if isinstance(each, str) else each.url
                more = prefill_has if role == "prefill" else {}
                told = {"model": model, "url": url, "role": role, **more}
                assert self.gw.control("POST", "/admin/engines", told)[0] == 201
                self._urls.append(url)
                self._names.append(url.removeprefix("http://"))
        return self

    def body(self, **fields: Any) -> bytes:
        return body(self.model, **fields)

    def ask(self, path: str = CHAT, more: str = "", **fields: Any) -> Answer:
        return self.gw.ask(self.body(**fields), path, more)

    def new(self, name: str) -> float:
        return self.gw.metrics().get(name, 0) - self._before.get(name, 0)

    def fallbacks(self) -> dict[str, float]:
        mark = "pd_fallbacks_total"
        names = [name for name in self.gw.metrics() if name.startswith(mark) and self.new(name)]
        return {name.split('"')[1]: self.new(name) for name in names}

    def unloaded(self) -> None:
        """All is over: no engine is thought to have anything to do."""
        for name in self._names:
            self.gw.until(f'engine_in_flight{{engine="{name}"}}', 0)
        self.gw.until("requests_in_flight", 0)

    def clear(self) -> None:
        self.unloaded()
        for url in self._urls:
            self.gw.control("DELETE", f"/admin/engines?model={self.model}&url={url}")


@pytest.fixture(scope="module")
def gateway_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    tables = [
        f'[models.{name}]\npolicy = "round_robin"\n[models.{name}.disaggregation]\n{told}\n'
        for name, told in MODELS.items()
    ]
    gw = Gateway(tmp_path_factory.mktemp("gateway"), "\n".join(tables))
    yield gw
    assert not gw.stop(), "a gateway that is well says nothing"


@pytest.fixture
def place(engine: Engines, gateway_of_all: Gateway) -> Iterator[Place]:
    made = Place(gateway_of_all)
    yield made
    made.clear()


@pytest.fixture
def nobody() -> str:
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return f"http://127.0.0.1:{sock.getsockname()[1]}"


# vLLM, when all is well.


@pytest.mark.parametrize("stream", [False, True])
def test_decode_fetches_what_prefill_has_made(engine: Engines, gateway: Gateways, stream: bool) -> None:
    vllm = Nixl()
    prefill, decode = engine(vllm.prefill), engine(vllm.decode)
    gw = gateway(nixl([prefill], [decode]))
    client = gw.client()
    for _ in range(3):
        answer = client.send(post(body(stream=stream, **ASKED))).answer()
        assert (answer.status, answer.raw) == (200, STREAM if stream else ANSWER)
    assert answer.header("x-withstand-engine") == decode.name
    assert answer.header("x-withstand-prefill") == prefill.name
    timing = answer.header("server-timing") or ""
    assert [part.split(";")[0].strip() for part in timing.split(",")] == ["hop", "engine", "prefill", "decode"]
    assert (vllm.made, vllm.recomputed, vllm.handles) == (3, 0, {})
    assert fallbacks(gw) == {}
    unloaded(gw, prefill, decode)


def test_decode_gets_the_clients_bytes_and_the_handle_after_them(engine: Engines, gateway: Gateways) -> None:
    vllm = Nixl()
    prefill, decode = engine(vllm.prefill), engine(vllm.decode)
    client = gateway(nixl([prefill], [decode])).client()
    asked = (
        b'{ "model":"m","messages":[] , "temperature":0.10,"max_tokens" : 7, "max_completion_tokens":9,"min_tokens":3,'
        b'"stop":["x"],"stream":true,"stream_options":{"include_usage":true},"logprobs":true,"seed":18446744073709551616,'
        b'"tools":[{"a":1}],"response_format":{"type":"json_object"},"n":1}\n'
    )
    assert client.send(post(asked, more="x-request-id: mine\r\naccept-encoding: gzip\r\n")).answer().raw == STREAM
    (first,), (second,) = prefill.seen, decode.seen
    assert second.body.startswith(asked.rstrip()[:-1] + b',"kv_transfer_params":{ "remote_num_tokens": 1234567890123')
    kept = {"model", "messages", "temperature", "logprobs", "seed", "tools", "response_format", "n"}
    made = {"stream", "max_tokens", "max_completion_tokens", "ignore_eos", "kv_transfer_params"}
    assert set(first.json) == kept | made
    assert b'"seed":18446744073709551616,' in first.body
    assert first.header("x-request-id") == second.header("x-request-id") == "mine"
    assert first.header("accept-encoding") is None
    assert second.header("accept-encoding") == "gzip"


def test_a_prefill_answer_in_chunks_is_understood(engine: Engines, gateway: Gateways) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    pieces = [chunk(b'{"kv_transfer_params":{"a"'), chunk(b": 01e5,"), chunk(b'"b":[1, 2]}}') + END]
    prefill = engine(lambda talk, _: talk.say(head, *pieces, gap_s=0.02))
    decode = engine(generate)
    pieces[1] = chunk(b": 1e5,")
    assert gateway(nixl([prefill], [decode])).ask(body(**ASKED)).status == 200
    assert decode.seen[0].body.endswith(b',"kv_transfer_params":{"a": 1e5,"b":[1, 2]}}')


def test_each_engine_is_called_by_its_own_names(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    vllm = Nixl()
    prefill, decode = engine(vllm.prefill), engine(vllm.decode)
    key = tmp_path / "key"
    key.write_text("sk-p")
    toml = nixl([prefill], [decode]).replace('role = "prefill"', f'role = "prefill"\nmodel = "p"\napi_key_file = "{key}"')
    assert gateway(toml).ask(body(**ASKED), more="authorization: Bearer mine\r\n").status == 200
    assert (prefill.seen[0].json["model"], prefill.seen[0].header("authorization")) == ("p", "Bearer sk-p")
    assert (decode.seen[0].json["model"], decode.seen[0].header("authorization")) == ("m", "Bearer mine")


def test_a_client_cannot_say_where_a_cache_is(engine: Engines, gateway: Gateways) -> None:
    vllm = Nixl()
    decode = engine(vllm.decode)
    gw = gateway(nixl([engine(vllm.prefill)], [decode], "min_prompt_bytes = 300"))
    foreign = {"kv_transfer_params": {"do_remote_prefill": True, "remote_host": "evil"}, "bootstrap_room": 1}
    for more in ({}, {"pad": "x" * 300}):
        assert gw.ask(body(**ASKED, **foreign, **more)).status == 200
    assert gw.ask(body(input="hi", **foreign), "/v1/responses").status == 200
    assert b"evil" not in b"".join(seen.body for seen in decode.seen)
    assert "bootstrap_room" not in decode.seen[0].json


# vLLM, what is not split.


@pytest.mark.parametrize(
    ("fields", "path", "reason"),
    [
        ({"n": 2}, "/v1/chat/completions", "samples"),
        ({"use_beam_search": True}, "/v1/chat/completions", "samples"),
        ({"prompt": ["a", "b"]}, "/v1/completions", "batch"),
        ({"prompt": [[1, 2], [3]]}, "/v1/completions", "batch"),
        ({"prompt": "a", "echo": True}, "/v1/completions", "prompt_logprobs"),
        ({"prompt_logprobs": 1}, "/v1/chat/completions", "prompt_logprobs"),
        ({"input": "a"}, "/v1/responses", "route"),
        ({"max_tokens": 9}, "/v1/messages", "route"),
        ({}, "/v1/chat/completions", "short"),
    ],
)
def test_what_decode_does_alone(
    engine: Engines, gateway: Gateways, fields: dict[str, object], path: str, reason: str
) -> None:
    vllm = Nixl()
    prefill, decode = engine(vllm.prefill), engine(vllm.decode)
    gw = gateway(nixl([prefill], [decode], f"min_prompt_bytes = {200 if reason == 'short' else 0}"))
    asked = body(**fields)
    answer = gw.ask(asked, path)
    assert answer.status == 200
    assert answer.header("x-withstand-prefill") == f"none; reason={reason}"
    assert fallbacks(gw) == {reason: 1}
    assert prefill.seen == []
    assert decode.seen[0].body == asked


def test_a_route_that_generates_nothing_is_not_counted(engine: Engines, gateway: Gateways) -> None:
    decode = engine(answering())
    gw = gateway(nixl([engine(silent)], [decode]))
    answer = gw.ask(body(input="a"), "/v1/embeddings")
    assert (answer.status, answer.header("x-withstand-prefill"), fallbacks(gw)) == (200, None, {})


# vLLM, when prefill fails.

FAILING: list[tuple[Behave, str, int]] = [
    (hanging_up(), "broke", 502),
    (hanging_up(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"), "broke", 502),
    (answering(b"SSH-2.0\r\n"), "broke", 502),
    (answering(UNAVAILABLE), "status", 503),
    (answering(whole(b"{}", b"500 Oh")), "status", 500),
    (answering(whole(b'{"choices":[],"kv_transfer_params":null}')), "no_handle", 502),
    (answering(whole(b"no json")), "no_handle", 502),
    (silent, "timeout", 504),
]


@pytest.mark.parametrize(("behave", "reason", "status"), FAILING)
def test_prefill_fails_and_decode_stands_in_or_not(
    engine: Engines, gateway: Gateways, behave: Behave, reason: str, status: int
) -> None:
    vllm = Nixl()
    prefill, decode = engine(behave), engine(vllm.decode)
    asked = body(stream=True, **ASKED)
    alone = gateway(nixl([prefill], [decode], "fallback = true\nprefill_s = 0.2"))
    answer = alone.ask(asked)
    assert (answer.status, answer.raw, decode.seen[0].body) == (200, STREAM, asked)
    assert answer.header("x-withstand-prefill") == f"none; reason={reason}"
    assert fallbacks(alone) == {reason: 1}
    unloaded(alone, prefill, decode)
    never = gateway(nixl([prefill], [decode], "prefill_s = 0.2"))
    answer = never.ask(asked)
    assert answer.status == status
    assert len(decode.seen) == 1
    unloaded(never, prefill, decode)


def test_prefill_is_not_there(engine: Engines, gateway: Gateways, nobody: str) -> None:
    vllm = Nixl()
    decode = engine(vllm.decode)
    gw = gateway(pd("vllm_nixl", [nobody], [decode.url]))
    answer = gw.ask(body(**ASKED))
    assert (answer.status, answer.header("retry-after") is not None, decode.seen) == (503, True, [])
    gw = gateway(pd("vllm_nixl", [nobody], [decode.url], "fallback = true"))
    assert gw.ask(body(**ASKED)).status == 200
    assert fallbacks(gw) == {"no_prefill": 1}


@pytest.mark.parametrize("behave", [behave for behave, reason, _ in FAILING if reason != "no_handle"])
def test_another_prefill_engine_is_asked(engine: Engines, gateway: Gateways, behave: Behave) -> None:
    vllm = Nixl()
    bad, good, decode = engine(behave), engine(vllm.prefill), engine(vllm.decode)
    gw = gateway(nixl([bad, good], [decode], "prefill_s = 0.3"))
    client = gw.client()
    assert [client.send(post(body(**ASKED))).answer().status for _ in range(2)] == [200, 200]
    assert (len(bad.seen), len(good.seen), len(decode.seen), vllm.recomputed) == (1, 2, 2, 0)
    assert gw.metrics()["failovers_total"] == 1
    unloaded(gw, bad, good, decode)


def test_a_request_that_prefill_refuses_is_refused(engine: Engines, gateway: Gateways) -> None:
    prefill, spare, decode = engine(answering(REFUSED)), engine(answering(REFUSED)), engine(silent)
    gw = gateway(nixl([prefill, spare], [decode], "fallback = true"))
    client = gw.client()
    for _ in range(2):
        answer = client.send(post(body(stream=True, **ASKED))).answer()
        assert (answer.status, answer.raw) == (400, b'{"error":{"message":"too long"}}')
        assert answer.header("x-withstand-engine") in {prefill.name, spare.name}
    assert (len(prefill.seen), len(spare.seen), decode.seen) == (1, 1, [])
    unloaded(gw, prefill, spare, decode)


def test_both_legs_share_one_time_to_the_first_byte(engine: Engines, gateway: Gateways) -> None:
    vllm = Nixl()
    prefill, decode = engine(silent), engine(vllm.decode)
    gw = gateway("[timeouts]\nfirst_byte_s = 0.3\n" + nixl([prefill], [decode]))
    answer = gw.ask(body(**ASKED))
    assert (answer.status, answer.error["code"]) == (504, "engine_timeout")
    assert prefill.seen[0].left.wait(LEFT_S)
    prefill.behave, decode.behave = vllm.prefill, silent
    assert gw.ask(body(**ASKED)).status == 504
    assert decode.seen[0].left.wait(LEFT_S)
    unloaded(gw, prefill, decode)


# vLLM, when decode fails.


@pytest.mark.parametrize("behave", [hanging_up(), answering(UNAVAILABLE)])
def test_a_handle_is_never_used_twice(engine: Engines, gateway: Gateways, behave: Behave) -> None:
    vllm = Nixl()
    prefill, bad, good = engine(vllm.prefill), engine(behave), engine(vllm.decode)
    gw = gateway(nixl([prefill], [bad, good]))
    assert gw.ask(body(**ASKED)).status == 200
    assert (len(prefill.seen), len(bad.seen), len(good.seen), vllm.recomputed) == (2, 1, 1, 0)
    assert bad.seen[0].json["kv_transfer_params"] != good.seen[0].json["kv_transfer_params"]
    unloaded(gw, prefill, bad, good)


def test_a_handle_that_was_not_sent_serves_another_decode(engine: Engines, gateway: Gateways, nobody: str) -> None:
    vllm = Nixl()
    prefill, good = engine(vllm.prefill), engine(vllm.decode)
    gw = gateway(pd("vllm_nixl", [prefill.url], [nobody, good.url]))
    assert gw.ask(body(**ASKED)).status == 200
    assert len(prefill.seen) == 1
    unloaded(gw, prefill, good)


def test_quiet_connections_that_were_closed_cost_nothing(engine: Engines, gateway: Gateways) -> None:
    vllm = Nixl()

    def once(serve: Behave, turn: int) -> Behave:
        def behave(talk: Talk, seen: Seen) -> None:
            if len(talk.engine.seen) == turn:
                talk.reset()
            else:
                serve(talk, seen)

        return behave

    prefill, decode = engine(once(vllm.prefill, 2)), engine(once(vllm.decode, 3))
    gw = gateway(nixl([prefill], [decode]))
    client = gw.client()
    assert [client.send(post(body(**ASKED))).answer().status for _ in range(4)] == [200] * 4
    assert gw.metrics()["retries_total"] == 2
    assert vllm.recomputed == 0
    unloaded(gw, prefill, decode)


def test_decode_dies_in_its_stream(engine: Engines, gateway: Gateways) -> None:
    vllm = Nixl()
    prefill, decode = engine(vllm.prefill), engine(hanging_up(STREAM_HEAD, chunk(EVENT)))
    gw = gateway(nixl([prefill], [decode]))
    answer = gw.ask(body(stream=True, **ASKED))
    assert b'data: {"error":' in answer.raw
    assert DONE not in answer.raw
    unloaded(gw, prefill, decode)


# SGLang.


@pytest.mark.parametrize("stream", [False, True])
def test_both_meet_in_one_room(engine: Engines, gateway: Gateways, stream: bool) -> None:
    rooms = Rooms()
    prefill, decode = engine(rooms.prefill), engine(rooms.decode)
    gw = gateway(sglang([prefill], [decode]))
    client = gw.client()
    asked = body(stream=stream, **ASKED)
    for _ in range(3):
        answer = client.send(post(asked, more="x-request-id: mine\r\n")).answer()
        assert (answer.status, answer.raw) == (200, STREAM if stream else ANSWER)
    assert answer.header("x-withstand-prefill") == prefill.name
    assert len(set(rooms.rooms)) == 3
    assert prefill.seen[0].body == decode.seen[0].body
    assert decode.seen[0].body.startswith(asked[:-1] + b',"bootstrap_host":"127.0.0.1","bootstrap_port":8998,')
    assert prefill.seen[0].header("x-request-id") == "mine"
    unloaded(gw, prefill, decode)


@pytest.mark.parametrize(
    ("fields", "count"),
    [({"prompt": ["a", "b", "c"]}, 3), ({"prompt": [[1], [2]]}, 2), ({"n": 2}, 2), ({"prompt": [1, 2]}, None)],
)
def test_a_batch_has_a_room_for_each(
    engine: Engines, gateway: Gateways, fields: dict[str, object], count: int | None
) -> None:
    rooms = Rooms(port=9001)
    prefill, decode = engine(rooms.prefill), engine(rooms.decode)
    toml = sglang([prefill], [decode]).replace('role = "prefill"', 'role = "prefill"\nbootstrap_port = 9001')
    assert gateway(toml).ask(body(**fields), "/v1/completions").status == 200
    (room,) = rooms.rooms
    assert count is None or len(set(room)) == count


@pytest.mark.parametrize("behave", [behave for behave, reason, _ in FAILING if reason != "no_handle"])
@pytest.mark.parametrize("spare", [False, True])
def test_a_prefill_that_fails_ends_its_decode(
    engine: Engines, gateway: Gateways, behave: Behave, spare: bool
) -> None:
    rooms = Rooms()
    bad, good = engine(behave), engine(rooms.prefill)
    decode = engine(rooms.decode)
    prefills = [bad, good] if spare else [bad]
    gw = gateway(sglang(prefills, [decode], "prefill_s = 0.3"))
    answer = gw.ask(body(stream=True, **ASKED))
    assert (answer.status == 200) is spare
    for seen in decode.seen:
        assert spare and seen is decode.seen[-1] or seen.left.wait(LEFT_S)
    unloaded(gw, *prefills, decode)


@pytest.mark.parametrize("behave", [hanging_up(), answering(UNAVAILABLE), answering(REFUSED)])
def test_a_decode_that_fails_ends_its_prefill(engine: Engines, gateway: Gateways, behave: Behave) -> None:
    prefill, decode = engine(silent), engine(behave)
    gw = gateway(sglang([prefill], [decode]))
    assert gw.ask(body(**ASKED)).status in {400, 502, 503}
    assert prefill.seen[0].left.wait(LEFT_S)
    unloaded(gw, prefill, decode)


# The client leaves.


def leaves(gw: Gateway, *seen: Callable[[], list[Seen]], head: bytes = b"") -> None:
    """As soon as all of them have the request, and the head has come where there is to be one."""
    client: Client = gw.client().send(post(body(stream=True, **ASKED)))
    if head:
        client.read_until(head)
    for each in seen:
        while not each():
            gw.metrics()
    client.close()
    for each in seen:
        assert each()[0].left.wait(LEFT_S)


@pytest.mark.parametrize("state", ["prefill", "decode", "stream"])
def test_the_client_leaves_vllm(engine: Engines, gateway: Gateways, state: str) -> None:
    vllm = Nixl()
    prefill = engine(silent if state == "prefill" else vllm.prefill)
    decode = engine(silent if state == "decode" else stuck(STREAM_HEAD, chunk(EVENT)))
    gw = gateway(nixl([prefill], [decode]))
    leaves(gw, lambda: (prefill if state == "prefill" else decode).seen, head=EVENT if state == "stream" else b"")
    unloaded(gw, prefill, decode)


@pytest.mark.parametrize("state", ["both", "stream"])
def test_the_client_leaves_sglang(engine: Engines, gateway: Gateways, state: str) -> None:
    prefill = engine(silent)
    decode = engine(silent if state == "both" else stuck(STREAM_HEAD, chunk(EVENT)))
    gw = gateway(sglang([prefill], [decode]))
    leaves(gw, lambda: prefill.seen, lambda: decode.seen, head=EVENT if state == "stream" else b"")
    unloaded(gw, prefill, decode)


# Who is there.


def test_engines_of_both_roles_come_and_go(engine: Engines, gateway: Gateways) -> None:
    vllm = Nixl()
    prefill, decode, more = engine(vllm.prefill), engine(vllm.decode), engine(vllm.prefill)
    gw = gateway(nixl([prefill], [decode]))
    place = {"model": "m", "url": more.url}
    assert gw.control("POST", "/admin/engines", place)[0] == 400
    assert gw.control("POST", "/admin/engines", {**place, "role": "prefill"})[0] == 201
    assert gw.control("PATCH", "/admin/engines", {"model": "m", "url": prefill.url, "draining": True})[0] == 200
    assert gw.ask(body(**ASKED)).header("x-withstand-prefill") == more.name
    told = {seat["engine"]: seat["role"] for seat in gw.control("GET", "/admin/engines")[1]["m"]}
    assert told == {prefill.name: "prefill", decode.name: "decode", more.name: "prefill"}
    assert gw.control("DELETE", f"/admin/engines?model=m&url={more.url}")[0] == 200
    assert gw.control("GET", "/ready")[1]["models"] == {"m": False}


def test_what_came_of_it_is_json(engine: Engines, gateway: Gateways) -> None:
    vllm = Nixl()
    decode = engine(vllm.decode)
    assert gateway(nixl([engine(vllm.prefill)], [decode])).ask(body(**ASKED)).status == 200
    assert msgspec.json.decode(decode.seen[0].body)["messages"] == ASKED["messages"]
