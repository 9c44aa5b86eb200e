"""Anything in any order over connections that are kept: each answer is by the newest configuration, and its own."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from engines import END, STREAM_HEAD, Behave, Engine, Seen, Talk, chunk, whole
from gateways import Answer, Client, Gateway, body, get, post
from money import key

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
STEPS = int(os.environ.get("WITHSTAND_FUZZ", "300"))

OWNERS = ("alice", "bob", "carol")
ORIGINS = ("https://a.example", "https://b.example")


FORMS: dict[str, Callable[[bytes, bytes], list[bytes]]] = {
    "whole": lambda facts, _: [whole(facts)],
    "dated": lambda facts, nonce: [whole(facts, more=b"date: %b\r\n" % nonce)],
    "last": lambda facts, _: [whole(facts, more=b"connection: close\r\n")],
    "cut": lambda facts, _: [whole(facts)[:20], whole(facts)[20:-5], whole(facts)[-5:]],
    "hinted": lambda facts, _: [b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + whole(facts)],
    "stream": lambda facts, _: [STREAM_HEAD + chunk(facts) + END],
    "slow stream": lambda facts, _: [STREAM_HEAD, chunk(facts), END],
    "left": lambda facts, _: [STREAM_HEAD + chunk(facts) + END],
    "unwell": lambda facts, _: [whole(facts, b"500 Oops")],
    "full": lambda facts, _: [whole(facts, b"429 Slow Down")],
}
"""Of an answer, by its name: what is said at once. Behind two of them the engine hangs up."""
OFTEN = ("whole", "whole", "whole", "dated", "last", "cut", "hinted", "stream", "stream", "slow stream", "left")
FAILING = {"unwell": 500, "full": 429}


def telling(talk: Talk, seen: Seen) -> None:
    """An answer of the form that the request asks for, which says what has arrived."""
    told = seen.json
    lines = {name: seen.header(name) for name in ("authorization", "x-api-key", "x-request-id", "traceparent")}
    facts = msgspec.json.encode({**lines, "engine": talk.engine.name, "body": told})
    talk.say(*FORMS[told["form"]](facts, b"%d" % told["nonce"]), gap_s=0.001)
    if told["form"] in {"last", "left"}:
        talk.sock.close()


@dataclass
class World:
    """What is configured just now, as the dice have it."""

    dice: Random
    folder: Path
    engines: list[Engine]
    number: int = 0
    keys: dict[str, list[str] | None] = field(default_factory=dict)
    """Owner: the models that it may use."""
    names: dict[str, str] = field(default_factory=dict)
    """Of each name that a client may give the model."""
    places: dict[str, dict[str, tuple[str, str | None]]] = field(default_factory=dict)
    """Model: engine's name: the model's name there, and the gateway's key."""
    origins: tuple[str, ...] = ()
    body_bytes: int = 0

    def toml(self) -> str:
        dice = self.dice
        self.number += 1
        self.keys = {o: dice.choice((None, ["m"], ["n"], ["m", "n"])) for o in OWNERS if dice.random() < 0.7}
        self.names = {"m": "m", "n": "n", f"at-{self.number}": "m", dice.choice(("x", "y")): dice.choice("mn")}
        self.places, self.body_bytes = {}, dice.choice((2000, 1 << 20))
        self.origins = dice.choice(((), ORIGINS[:1], ORIGINS, ("*",)))
        said = key("root", "sk-root", "admin = true")
        said += "".join(key(o, f"sk-{o}", "" if m is None else f"models = {m}") for o, m in self.keys.items())
        for name in ("m", "n"):
            aliases = [alias for alias, of in self.names.items() if of == name != alias]
            said += f"[models.{name}]\naliases = {aliases}\npolicy = 'round_robin'\n"
            said += "".join(self._engine(name, one) for one in dice.sample(self.engines, dice.randint(1, 3)))
        return f"{said}[cors]\norigins = {list(self.origins)}\n[limits]\nbody_bytes = {self.body_bytes}\n"

    def _engine(self, name: str, one: Engine) -> str:
        served = self.dice.choice((name, name, "other"))
        secret = self.dice.choice((None, "sk-1", "sk-2"))
        self.places.setdefault(name, {})[one.name] = served, secret
        said = f"[[models.{name}.engines]]\nurl = '{one.url}'\nmodel = '{served}'\n"
        if secret is not None:
            (self.folder / secret).write_text(secret)
            said += f"api_key_file = '{self.folder / secret}'\n"
        return said


@dataclass
class Asked:
    """A request, and the connection that it went over."""

    owner: str | None
    named: str
    told: dict[str, Any]
    said: bytes
    content: bytes
    origin: str | None
    request_id: str | None


def asked(world: World, nonce: int, like: Asked | None) -> Asked:
    """Mostly with the head of the last one."""
    dice = world.dice
    form = dice.choice(tuple(FAILING)) if dice.random() < 0.1 else dice.choice(OFTEN)
    named = dice.choice((*world.names, "z"))
    content = body(named, nonce=nonce, form=form, pad="x" * dice.choice((0, 0, 1, 500, 3000)))
    if like is not None and dice.random() < 0.7:
        owner, origin, request_id = like.owner, like.origin, like.request_id
    else:
        owner = dice.choice((*OWNERS, "nobody", None))
        origin = dice.choice((None, *ORIGINS))
        request_id = dice.choice((None, "r-1", "r-2"))
    more = "" if owner is None else f"Authorization: Bearer sk-{owner}\r\n"
    more += "" if origin is None else f"Origin: {origin}\r\n"
    more += "" if request_id is None else f"X-Request-Id: {request_id}\r\n"
    said = post(content, more=more)
    return Asked(owner, named, msgspec.json.decode(content), said, content, origin, request_id)


def judge(world: World, request: Asked, answer: Answer) -> None:
    """By what is configured."""
    may_read = request.origin if request.origin in world.origins else "*" if "*" in world.origins else None
    if len(request.content) > world.body_bytes:
        assert answer.status == 413
        return
    assert answer.header("access-control-allow-origin") == (may_read if request.origin else None)
    if request.request_id is not None:
        assert answer.header("x-request-id") == request.request_id
    if request.owner not in world.keys:
        assert answer.status == 401
        return
    name, may = world.names.get(request.named), world.keys[request.owner]
    if name is None or not (may is None or name in may):
        assert answer.status == 404
        return
    assert answer.status == FAILING.get(request.told["form"], 200)
    assert answer.complete
    facts = msgspec.json.decode(answer.raw[answer.raw.index(b"{") : answer.raw.rindex(b"}") + 1])
    served, secret = world.places[name][facts["engine"]]
    assert facts["body"] == {**request.told, "model": served if served != request.named else request.named}
    assert facts["authorization"] == (None if secret is None else f"Bearer {secret}")
    assert facts["x-request-id"] == answer.header("x-request-id")
    assert answer.header("x-withstand-engine") == facts["engine"]


@pytest.mark.parametrize("workers", [1, 2])
def test_every_answer_is_by_what_is_configured_and_its_own(
    engine: Engines, gateway: Gateways, tmp_path: Path, workers: int
) -> None:
    seed = int(os.environ.get("WITHSTAND_SEED", "7"))
    world = World(Random(seed), tmp_path, [engine(telling) for _ in range(4)])
    front = f"workers = {workers}\n"
    gw = gateway(front + world.toml())
    talks = [gw.client() for _ in range(6)]
    last: list[Asked | None] = [None] * len(talks)
    for step in range(STEPS):
        if world.dice.random() < 0.08:
            (tmp_path / "gateway.toml").write_text('listen = "127.0.0.1:0"\n' + front + world.toml())
            assert gw.control("POST", "/admin/reload", {}, Authorization="Bearer sk-root")[0] == 200
            for client in talks:
                until_it_is_known(client, f"at-{world.number}")
        i = world.dice.randrange(len(talks))
        ahead = world.dice.choice((1, 1, 1, 2, 3))
        requests: list[Asked] = []
        for n in range(ahead):
            last[i] = request = asked(world, step * 10 + n, last[i])
            requests.append(request)
        talks[i].send(b"".join(request.said for request in requests))
        for request in requests:
            judge(world, request, answer := talks[i].answer())
            if answer.status == 413:
                talks[i], last[i] = gw.client(), None
                until_it_is_known(talks[i], f"at-{world.number}")
                break


def until_it_is_known(client: Client, name: str) -> None:
    """The worker at the other end goes by the newest file."""
    for _ in range(1000):
        answer = client.send(get("/v1/models", "Authorization: Bearer sk-root\r\n")).answer()
        if name.encode() in answer.raw:
            return
    raise AssertionError(f"{name} never came")
