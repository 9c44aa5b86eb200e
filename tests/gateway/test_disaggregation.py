"""Prefill and decode on different engines: what each is sent, and what follows when one of them fails."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engines import (
    DONE,
    END,
    EVENT,
    STREAM_HEAD,
    Behave,
    Engine,
    Seen,
    Talk,
    answering,
    chunk,
    hanging_up,
    silent,
    stuck,
    whole,
)
from gateways import CHAT, Answer, Client, Gateway, body, post
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


# vLLM, when all is well.


@pytest.mark.parametrize("stream", [False, True])
def test_decode_fetches_what_prefill_has_made(engine: Engines, place: Place, stream: bool) -> None:
    vllm = Nixl()
    prefill, decode = engine(vllm.prefill), engine(vllm.decode)
    place.seat("vllm", [prefill], [decode])
    client = place.gw.client()
    for _ in range(3):
        answer = client.send(post(place.body(stream=stream, **ASKED))).answer()
        assert (answer.status, answer.raw) == (200, STREAM if stream else ANSWER)
    assert answer.header("x-withstand-engine") == decode.name
    assert answer.header("x-withstand-prefill") == prefill.name
    timing = answer.header("server-timing") or ""
    assert [part.split(";")[0].strip() for part in timing.split(",")] == ["hop", "engine", "prefill", "decode"]
    assert (vllm.made, vllm.recomputed, vllm.handles) == (3, 0, {})
    assert (prefill.connections, decode.connections) == (1, 1)
    assert place.fallbacks() == {}


def test_decode_gets_the_clients_bytes_and_the_handle_after_them(engine: Engines, place: Place) -> None:
    vllm = Nixl()
    prefill, decode = engine(vllm.prefill), engine(vllm.decode)
    client = place.seat("vllm", [prefill], [decode]).gw.client()
    asked = (
        b'{ "model":"vllm","messages":[] , "temperature":0.10,"max_tokens" : 7, "max_completion_tokens":9,"n":1,'
        b'"min_tokens":3,"stop":["x"],"stream":true,"stream_options":{"include_usage":true},"logprobs":true,'
        b'"seed":18446744073709551616,"tools":[{"a":1}],"response_format":{"type":"json_object"}}\n'
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


def test_a_prefill_answer_in_chunks_is_understood(engine: Engines, place: Place) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    pieces = [chunk(b'{"kv_transfer_params":{"a"'), chunk(b": 1e5,"), chunk(b'"b":[1, 2]}}') + END]
    prefill, decode = engine(lambda talk, _: talk.say(head, *pieces, gap_s=0.02)), engine(generate)
    assert place.seat("vllm", [prefill], [decode]).ask(**ASKED).status == 200
    assert decode.seen[0].body.endswith(b',"kv_transfer_params":{"a": 1e5,"b":[1, 2]}}')


def test_each_engine_has_its_own_name_for_the_model_and_its_own_key(
    engine: Engines, gateway: Callable[[str], Gateway], tmp_path: Path
) -> None:
    vllm = Nixl()
    prefill, decode = engine(vllm.prefill), engine(vllm.decode)
    key = tmp_path / "key"
    key.write_text("sk-p")
    gw = gateway(f"""
        [models.m]
        disaggregation = {{ style = "vllm_nixl" }}
        engines = [
            {{ url = "{prefill.url}", role = "prefill", model = "p", api_key_file = "{key}" }},
            {{ url = "{decode.url}", role = "decode" }},
        ]""")
    assert gw.ask(body(**ASKED), more="authorization: Bearer mine\r\n").status == 200
    assert (prefill.seen[0].json["model"], prefill.seen[0].header("authorization")) == ("p", "Bearer sk-p")
    assert (decode.seen[0].json["model"], decode.seen[0].header("authorization")) == ("m", "Bearer mine")


def test_a_client_cannot_say_where_a_cache_is(engine: Engines, place: Place) -> None:
    vllm = Nixl()
    decode = engine(vllm.decode)
    place.seat("vllm-long", [engine(vllm.prefill)], [decode])
    foreign = {"kv_transfer_params": {"do_remote_prefill": True, "remote_host": "evil"}, "bootstrap_room": 1}
    for more in ({}, {"pad": "x" * 300}):
        assert place.ask(**ASKED, **foreign, **more).status == 200
    assert place.ask("/v1/responses", input="hi", **foreign).status == 200
    assert b"evil" not in b"".join(seen.body for seen in decode.seen)
    assert "bootstrap_room" not in decode.seen[0].json


# vLLM, what is not split.


@pytest.mark.parametrize(
    ("fields", "path", "reason"),
    [
        ({"n": 2}, CHAT, "samples"),
        ({"use_beam_search": True}, CHAT, "samples"),
        ({"prompt": ["a", "b"]}, "/v1/completions", "batch"),
        ({"prompt": [[1, 2], [3]]}, "/v1/completions", "batch"),
        ({"prompt": "a", "echo": True}, "/v1/completions", "prompt_logprobs"),
        ({"prompt_logprobs": 1}, CHAT, "prompt_logprobs"),
        ({"input": "a"}, "/v1/responses", "route"),
        ({"max_tokens": 9}, "/v1/messages", "route"),
        ({}, CHAT, "short"),
    ],
)
def test_what_decode_does_alone(
    engine: Engines, place: Place, fields: dict[str, object], path: str, reason: str
) -> None:
    vllm = Nixl()
    prefill, decode = engine(vllm.prefill), engine(vllm.decode)
    place.seat("vllm-long" if reason == "short" else "vllm", [prefill], [decode])
    answer = place.ask(path, **fields)
    assert answer.status == 200
    assert answer.header("x-withstand-prefill") == f"none; reason={reason}"
    assert place.fallbacks() == {reason: 1}
    assert prefill.seen == []
    assert decode.seen[0].body == place.body(**fields)


def test_a_route_that_generates_nothing_is_not_counted(engine: Engines, place: Place) -> None:
    place.seat("vllm", [engine(silent)], [engine(answering())])
    answer = place.ask("/v1/embeddings", input="a")
    assert (answer.status, answer.header("x-withstand-prefill"), place.fallbacks()) == (200, None, {})


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


def hasty(model: str, behave: Behave) -> str:
    """Where prefill's time is short; elsewhere no test needs to be fast."""
    return model.replace("vllm", "vllm-hasty").replace("sglang", "sglang-hasty") if behave is silent else model


@pytest.mark.parametrize(("behave", "reason", "status"), FAILING)
def test_prefill_fails_and_decode_stands_in(
    engine: Engines, place: Place, behave: Behave, reason: str, status: int
) -> None:
    assert status >= 500
    decode = engine(Nixl().decode)
    place.seat(hasty("vllm-alone", behave), [engine(behave)], [decode])
    answer = place.ask(stream=True, **ASKED)
    assert (answer.status, answer.raw) == (200, STREAM)
    assert decode.seen[0].body == place.body(stream=True, **ASKED)
    assert answer.header("x-withstand-prefill") == f"none; reason={reason}"
    assert place.fallbacks() == {reason: 1}


@pytest.mark.parametrize(("behave", "reason", "status"), FAILING)
def test_prefill_fails_and_the_client_is_told(
    engine: Engines, place: Place, behave: Behave, reason: str, status: int
) -> None:
    decode = engine(Nixl().decode)
    place.seat(hasty("vllm", behave), [engine(behave)], [decode])
    assert place.ask(stream=True, **ASKED).status == status, reason
    assert (decode.seen, place.fallbacks()) == ([], {})


def test_prefill_is_not_there(engine: Engines, place: Place, nobody: str) -> None:
    decode = engine(Nixl().decode)
    answer = place.seat("vllm", [nobody], [decode]).ask(**ASKED)
    assert (answer.status, answer.header("retry-after") is not None, decode.seen) == (503, True, [])


@pytest.mark.parametrize("missing", ["prefill", "decode"])
def test_who_is_missing_is_told(engine: Engines, place: Place, missing: str) -> None:
    one = engine(silent)
    place.seat("vllm", [] if missing == "prefill" else [one], [] if missing == "decode" else [one])
    told = f"No engine of `vllm` can be asked at present: it has none that {missing}."
    assert place.ask(**ASKED).error["message"] == told


def test_prefill_is_not_there_and_decode_stands_in(engine: Engines, place: Place, nobody: str) -> None:
    assert place.seat("vllm-alone", [nobody], [engine(Nixl().decode)]).ask(**ASKED).status == 200
    assert place.fallbacks() == {"no_prefill": 1}


@pytest.mark.parametrize("behave", [behave for behave, reason, _ in FAILING if reason != "no_handle"])
def test_another_prefill_engine_is_asked(engine: Engines, place: Place, behave: Behave) -> None:
    vllm = Nixl()
    bad, good, decode = engine(behave), engine(vllm.prefill), engine(vllm.decode)
    place.seat(hasty("vllm-alone", behave), [bad, good], [decode])
    client = place.gw.client()
    assert [client.send(post(place.body(**ASKED))).answer().status for _ in range(2)] == [200, 200]
    assert (len(bad.seen), len(good.seen), len(decode.seen), vllm.recomputed) == (1, 2, 2, 0)
    assert place.new("failovers_total") == 1


def test_a_request_that_prefill_refuses_is_refused(engine: Engines, place: Place) -> None:
    prefill, spare, decode = engine(answering(REFUSED)), engine(answering(REFUSED)), engine(silent)
    client = place.seat("vllm-alone", [prefill, spare], [decode]).gw.client()
    for _ in range(2):
        answer = client.send(post(place.body(stream=True, **ASKED))).answer()
        assert (answer.status, answer.raw) == (400, b'{"error":{"message":"too long"}}')
        assert answer.header("x-withstand-engine") in {prefill.name, spare.name}
    assert (len(prefill.seen), len(spare.seen), decode.seen) == (1, 1, [])


@pytest.mark.parametrize("slow", ["prefill", "decode"])
def test_both_legs_share_one_time_to_the_first_byte(
    engine: Engines, gateway: Callable[[str], Gateway], slow: str
) -> None:
    vllm = Nixl()
    prefill = engine(silent if slow == "prefill" else vllm.prefill)
    spare, decode = engine(prefill.behave), engine(silent)
    gw = gateway(f"""
        timeouts = {{ first_byte_s = 1.0 }}
        [models.m]
        disaggregation = {{ style = "vllm_nixl", fallback = true }}
        engines = [
            {{ url = "{prefill.url}", role = "prefill" }},
            {{ url = "{spare.url}", role = "prefill" }},
            {{ url = "{decode.url}", role = "decode" }},
        ]""")
    answer = gw.ask(body(**ASKED))
    assert (answer.status, answer.error["code"]) == (504, "engine_timeout")
    asked = [*prefill.seen, *spare.seen, *decode.seen]
    assert len(asked) == (1 if slow == "prefill" else 2), "late work is not asked for elsewhere"
    assert asked[-1].left.wait(LEFT_S)


@pytest.mark.parametrize("behave", [answering(whole(b'{"error":{"message":"too long"}}', b"400 Bad"), 0.4), silent])
def test_a_stream_is_kept_alive_through_prefill(
    engine: Engines, gateway: Callable[[str], Gateway], behave: Behave
) -> None:
    vllm = Nixl()
    prefill, decode = engine(behave), engine(vllm.decode)
    gw = gateway(f"""
        keep_alive_comment_s = 0.1
        [models.m]
        disaggregation = {{ style = "vllm_nixl", fallback = true, prefill_s = 1.0 }}
        engines = [{{ url = "{prefill.url}", role = "prefill" }}, {{ url = "{decode.url}", role = "decode" }}]""")
    answer = gw.ask(body(stream=True, **ASKED))
    assert (answer.status, answer.complete) == (200, True)
    assert b": the engine has not begun yet" in answer.raw
    assert answer.raw.endswith(STREAM) if behave is silent else b"too long" in answer.raw


# vLLM, when decode fails.


@pytest.mark.parametrize("behave", [hanging_up(), answering(UNAVAILABLE)])
def test_a_handle_is_never_used_twice(engine: Engines, place: Place, behave: Behave) -> None:
    vllm = Nixl()
    prefill, bad, good = engine(vllm.prefill), engine(behave), engine(vllm.decode)
    assert place.seat("vllm", [prefill], [bad, good]).ask(**ASKED).status == 200
    assert (len(prefill.seen), len(bad.seen), len(good.seen), vllm.recomputed) == (2, 1, 1, 0)
    assert bad.seen[0].json["kv_transfer_params"] != good.seen[0].json["kv_transfer_params"]


def test_a_handle_that_was_not_sent_serves_another_decode(engine: Engines, place: Place, nobody: str) -> None:
    vllm = Nixl()
    prefill, good = engine(vllm.prefill), engine(vllm.decode)
    assert place.seat("vllm", [prefill], [nobody, good]).ask(**ASKED).status == 200
    assert (len(prefill.seen), vllm.recomputed) == (1, 0)


def test_quiet_connections_that_were_closed_cost_nothing(engine: Engines, place: Place) -> None:
    vllm = Nixl()

    def once(serve: Behave, turn: int) -> Behave:
        def behave(talk: Talk, seen: Seen) -> None:
            if len(talk.engine.seen) == turn:
                talk.reset()
            else:
                serve(talk, seen)

        return behave

    prefill, decode = engine(once(vllm.prefill, 2)), engine(once(vllm.decode, 3))
    client = place.seat("vllm", [prefill], [decode]).gw.client()
    assert [client.send(post(place.body(**ASKED))).answer().status for _ in range(4)] == [200] * 4
    assert place.new("retries_total") == 2
    assert vllm.recomputed == 0


def test_decode_dies_in_its_stream(engine: Engines, place: Place) -> None:
    place.seat("vllm", [engine(Nixl().prefill)], [engine(hanging_up(STREAM_HEAD, chunk(EVENT)))])
    answer = place.ask(stream=True, **ASKED)
    assert b'data: {"error":' in answer.raw
    assert DONE not in answer.raw


# SGLang.


@pytest.mark.parametrize("stream", [False, True])
def test_both_meet_in_one_room(engine: Engines, place: Place, stream: bool) -> None:
    rooms = Rooms()
    prefill, decode = engine(rooms.prefill), engine(rooms.decode)
    client = place.seat("sglang", [prefill], [decode]).gw.client()
    asked = place.body(stream=stream, **ASKED)
    for _ in range(3):
        answer = client.send(post(asked, more="x-request-id: mine\r\n")).answer()
        assert (answer.status, answer.raw) == (200, STREAM if stream else ANSWER)
    assert answer.header("x-withstand-prefill") == prefill.name
    assert len(set(rooms.rooms)) == 3
    assert prefill.seen[0].body == decode.seen[0].body
    assert decode.seen[0].body.startswith(asked[:-1] + b',"bootstrap_host":"127.0.0.1","bootstrap_port":8998,')
    assert prefill.seen[0].header("x-request-id") == "mine"


@pytest.mark.parametrize(
    ("fields", "count"),
    [({"prompt": ["a", "b", "c"]}, 3), ({"prompt": [[1], [2]]}, 2), ({"n": 2}, 2), ({"prompt": [1, 2]}, None)],
)
def test_a_batch_has_a_room_for_each(
    engine: Engines, place: Place, fields: dict[str, object], count: int | None
) -> None:
    rooms = Rooms(port=9001)
    place.seat("sglang", [engine(rooms.prefill)], [engine(rooms.decode)], bootstrap_port=9001)
    assert place.ask("/v1/completions", **fields).status == 200
    (room,) = rooms.rooms
    assert isinstance(room, int) if count is None else len(set(room)) == count


@pytest.mark.parametrize("behave", [behave for behave, reason, _ in FAILING if reason != "no_handle"])
@pytest.mark.parametrize("spare", [False, True])
def test_a_prefill_that_fails_ends_its_decode(engine: Engines, place: Place, behave: Behave, spare: bool) -> None:
    rooms = Rooms()
    decode = engine(rooms.decode)
    place.seat(hasty("sglang", behave), [engine(behave), engine(rooms.prefill)][: 1 + spare], [decode])
    answer = place.ask(stream=True, **ASKED)
    assert (answer.status, answer.raw) == (200, STREAM) if spare else answer.status >= 500
    for seen in decode.seen:
        assert seen.json["bootstrap_room"] in rooms.rooms or seen.left.wait(AT_ONCE_S)


@pytest.mark.parametrize("behave", [hanging_up(), answering(UNAVAILABLE), answering(REFUSED)])
def test_a_decode_that_fails_ends_its_prefill(engine: Engines, place: Place, behave: Behave) -> None:
    prefill, decode = engine(silent), engine(behave)
    assert place.seat("sglang", [prefill], [decode]).ask(**ASKED).status in {400, 502, 503}
    for seen in prefill.seen:  # decode may have failed before it was there
        assert seen.left.wait(AT_ONCE_S)


def test_prefill_fails_when_decode_has_begun(engine: Engines, place: Place) -> None:
    decode = engine(stuck(STREAM_HEAD, chunk(EVENT)))
    place.seat("sglang-hasty", [engine(silent), engine(silent)], [decode])
    answer = place.ask(stream=True, **ASKED)
    assert answer.status == 200
    assert answer.raw.startswith(chunk(EVENT))
    assert b'data: {"error":' in answer.raw
    assert decode.seen[0].left.wait(AT_ONCE_S)


# The client leaves.


def leaves(place: Place, *engines: Engine, mark: bytes = b"") -> None:
    """As soon as all of them have the request, and what is to be seen of the answer has come."""
    client: Client = place.gw.client().send(post(place.body(stream=True, **ASKED)))
    if mark:
        client.read_until(mark)
    for each in engines:
        while not each.seen:
            place.gw.metrics()
    client.close()
    for each in engines:
        assert each.seen[0].left.wait(AT_ONCE_S)


@pytest.mark.parametrize("state", ["prefill", "decode", "stream"])
def test_the_client_leaves_vllm(engine: Engines, place: Place, state: str) -> None:
    prefill = engine(silent if state == "prefill" else Nixl().prefill)
    decode = engine(silent if state == "decode" else stuck(STREAM_HEAD, chunk(EVENT)))
    place.seat("vllm", [prefill], [decode])
    leaves(place, prefill if state == "prefill" else decode, mark=EVENT if state == "stream" else b"")


@pytest.mark.parametrize("state", ["both", "stream"])
def test_the_client_leaves_sglang(engine: Engines, place: Place, state: str) -> None:
    prefill = engine(silent)
    decode = engine(silent if state == "both" else stuck(STREAM_HEAD, chunk(EVENT)))
    place.seat("sglang", [prefill], [decode])
    leaves(place, prefill, decode, mark=EVENT if state == "stream" else b"")


# Who is there.


def test_engines_of_both_roles_come_and_go(engine: Engines, place: Place) -> None:
    vllm = Nixl()
    prefill, decode, more = engine(vllm.prefill), engine(vllm.decode), engine(vllm.prefill)
    gw = place.seat("vllm", [prefill], [decode]).gw
    url = {"model": "vllm", "url": more.url}
    assert gw.control("POST", "/admin/engines", url)[0] == 400
    assert gw.control("POST", "/admin/engines", {**url, "role": "prefill"})[0] == 201
    assert gw.control("PATCH", "/admin/engines", {"model": "vllm", "url": prefill.url, "draining": True})[0] == 200
    assert place.ask(**ASKED).header("x-withstand-prefill") == more.name
    told = {seat["engine"]: seat["role"] for seat in gw.control("GET", "/admin/engines")[1]["vllm"]}
    assert told == {prefill.name: "prefill", decode.name: "decode", more.name: "prefill"}
    assert gw.control("DELETE", f"/admin/engines?model=vllm&url={more.url}")[0] == 200
    assert gw.control("GET", "/ready")[1]["models"]["vllm"] is False
