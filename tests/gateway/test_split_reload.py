"""Another configuration for a model whose prefill is elsewhere: roles and styles change, and no request is lost."""

import socket
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from engines import DONE, END, EVENT, STREAM_HEAD, Behave, Engine, Seen, Talk, chunk
from gateways import Gateway, body, post
from hosted import until
from pd_engines import ANSWER, Nixl, Rooms, generate

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
Reload = Callable[[Gateway, str], None]

ASKED = {"messages": [{"role": "user", "content": "hi"}]}
RELOADS = 60


@pytest.fixture
def reload(tmp_path: Path) -> Reload:
    def go(gw: Gateway, toml: str) -> None:
        (tmp_path / "gateway.toml").write_text('listen = "127.0.0.1:0"\n' + toml)
        status, told = gw.control("POST", "/admin/reload", {})
        assert status == 200, told

    return go


def split(style: str, prefills: list[Engine], decodes: list[Engine], more: str = "") -> str:
    """The TOML of one model; ``more`` is of its disaggregation."""
    places = "".join(
        f'[[models.m.engines]]\nurl = "{each.url}"\nrole = "{role}"\n'
        for role, engines in (("prefill", prefills), ("decode", decodes))
        for each in engines
    )
    return f'[models.m]\npolicy = "round_robin"\n[models.m.disaggregation]\nstyle = "{style}"\n{more}\n{places}'


def plain(*engines: Engine) -> str:
    return "".join(f'[[models.m.engines]]\nurl = "{each.url}"\n' for each in engines)


def in_flight(gw: Gateway, engine: Engine) -> float:
    return gw.metrics()[f'engine_in_flight{{engine="{engine.name}"}}']


class Either:
    """Prefills or decodes, whichever it is asked for; ``talks`` are the streams that it holds."""

    def __init__(self) -> None:
        self.vllm = Nixl()
        self.talks: list[Talk] = []

    def behave(self, talk: Talk, seen: Seen) -> None:
        told = seen.json
        if told.get("kv_transfer_params", {}).get("do_remote_decode"):
            self.vllm.prefill(talk, seen)
        elif told.get("stream"):
            self.vllm.handles.clear()
            talk.say(STREAM_HEAD, chunk(EVENT))
            self.talks.append(talk)
            talk.wait_for_leave(seen)
        else:
            self.vllm.decode(talk, seen)


def test_engines_change_their_roles(engine: Engines, gateway: Gateways, reload: Reload) -> None:
    either = Either()
    a, b = engine(either.behave), engine(either.behave)
    gw = gateway(split("vllm_nixl", [a], [b]))
    stream = gw.client().send(post(body(stream=True, **ASKED)))
    stream.read_until(EVENT)
    reload(gw, split("vllm_nixl", [b], [a]))
    assert (in_flight(gw, a), in_flight(gw, b)) == (0, 1), "they are the same engines"
    answer = gw.ask(body(**ASKED))
    assert (answer.status, answer.raw) == (200, ANSWER)
    assert (answer.header("x-withstand-engine"), answer.header("x-withstand-prefill")) == (a.name, b.name)
    either.talks[0].say(chunk(DONE), END)
    assert stream.answer().complete
    reload(gw, plain(a, b))
    answer = gw.ask(body(**ASKED))
    assert (answer.status, answer.header("x-withstand-prefill")) == (200, None)
    reload(gw, split("vllm_nixl", [a], [b]))
    assert gw.ask(body(**ASKED)).header("x-withstand-prefill") == a.name
    assert (in_flight(gw, a), in_flight(gw, b)) == (0, 0)


def test_the_style_changes_and_so_do_the_ports(engine: Engines, gateway: Gateways, reload: Reload) -> None:
    vllm, rooms, elsewhere = Nixl(), Rooms(), Rooms(9001)
    old, new = [engine(vllm.prefill), engine(vllm.decode)], [engine(rooms.prefill), engine(rooms.decode)]
    gw = gateway(split("vllm_nixl", old[:1], old[1:]))
    assert gw.ask(body(**ASKED)).raw == ANSWER
    reload(gw, split("sglang", new[:1], new[1:]))
    assert gw.ask(body(**ASKED)).raw == ANSWER
    new[0].behave, new[1].behave = elsewhere.prefill, elsewhere.decode
    told = split("sglang", new[:1], new[1:])
    reload(gw, told.replace('role = "prefill"', 'role = "prefill"\nbootstrap_port = 9001'))
    assert gw.ask(body(**ASKED)).raw == ANSWER
    assert (vllm.made, len(rooms.rooms), len(elsewhere.rooms)) == (1, 1, 1)


@pytest.mark.parametrize("way", ["sglang", "plain", "other engines"])
def test_what_fails_after_a_change_begins_anew_in_the_new_way(
    engine: Engines, gateway: Gateways, reload: Reload, way: str
) -> None:
    talks: list[Talk] = []

    def hold(talk: Talk, seen: Seen) -> None:
        talks.append(talk)
        talk.wait_for_leave(seen)

    vllm, rooms = Nixl(), Rooms()
    held, decode = engine(hold), engine(vllm.decode)
    gw = gateway(split("vllm_nixl", [held], [decode]))
    client = gw.client().send(post(body(**ASKED)))
    until(lambda: bool(talks), "prefill was never asked")
    if way == "sglang":
        reload(gw, split("sglang", [engine(rooms.prefill)], [engine(rooms.decode)]))
    elif way == "plain":
        reload(gw, plain(engine(generate)))
    else:
        reload(gw, split("vllm_nixl", [engine(vllm.prefill)], [decode]))
    talks[0].sock.shutdown(socket.SHUT_RDWR)
    answer = client.answer()
    assert (answer.status, answer.raw) == (200, ANSWER)
    assert (answer.header("x-withstand-prefill") is None) == (way == "plain")
    gw.until("requests_in_flight", 0)


def test_streams_outlive_any_number_of_changes(engine: Engines, gateway: Gateways, reload: Reload) -> None:
    dice = Random(11)
    either = Either()
    some = [engine(either.behave) for _ in range(4)]
    gw = gateway(split("vllm_nixl", some[:2], some[2:]))
    streams = []
    for _ in range(RELOADS):
        streams.append(gw.client().send(post(body(stream=True, **ASKED))))
        streams[-1].read_until(EVENT)
        there = dice.sample(some, dice.randint(2, 4))
        cut = dice.randint(0, len(there) - 1)
        fallback = dice.choice(["", "fallback = true"])
        reload(gw, split("vllm_nixl", there[:cut], there[cut:], fallback) if cut else plain(*there))
        assert gw.ask(body(**ASKED)).raw == ANSWER
    assert sum(gw.metrics()[f'engine_in_flight{{engine="{each.name}"}}'] for each in there) <= RELOADS
    for talk in either.talks:
        talk.say(chunk(DONE), END)
    assert [stream.answer().complete for stream in streams] == [True] * RELOADS
    gw.until("requests_in_flight", 0)
    for each in there:
        gw.until(f'engine_in_flight{{engine="{each.name}"}}', 0)
