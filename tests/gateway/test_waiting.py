"""Requests that wait for an engine with room: their order, their limits, and what becomes of them."""

import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines import DONE, END, EVENT, STREAM_HEAD, Behave, Engine, Seen, Talk, answering, chunk, silent, whole
from gateways import CHAT, Client, Gateway, body, model, post
from withstand.gateway.waiting import Lobby, Ticket, WaitingRoom

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]


# The order: no sockets, no clock.


class Scene:
    """Rooms, and seats that are free in each."""

    def __init__(self, *sizes: int) -> None:
        self.events: list[Callable[[], None]] = []
        self.lobby = Lobby(self.events.append)
        self.rooms = [self.lobby.room(size, 1.0) for size in sizes]
        self.free = 0
        self.gone: list[object] = []

    def enter(self, owner: str, name: object, room: int = 0, *, picky: bool = False, again: bool = False) -> Ticket:
        def called() -> bool:
            if picky or not self.free:
                return False
            self.free -= 1
            self.gone.append(name)
            return True

        ticket = self.rooms[room].enter(owner, called, again=again)
        assert ticket is not None
        return ticket

    def give(self, seats: int) -> None:
        self.free += seats
        self.lobby.stir()
        self.lobby.stir()
        while self.events:
            self.events.pop()()


def test_first_come_first_served() -> None:
    scene = Scene(10)
    for n in range(5):
        scene.enter("a", n)
    scene.give(2)
    scene.give(3)
    assert scene.gone == [0, 1, 2, 3, 4]
    assert not scene.rooms[0]


def test_keys_take_turns() -> None:
    scene = Scene(100)
    for n in range(50):
        scene.enter("many", n)
    scene.enter("few", "x")
    scene.enter("other", "y")
    for _ in range(5):
        scene.give(1)
    assert scene.gone == [0, "x", "y", 1, 2]


def test_rooms_with_an_engine_in_common_take_turns() -> None:
    scene = Scene(10, 10)
    for n in range(4):
        scene.enter("a", ("first", n), 0)
        scene.enter("a", ("second", n), 1)
    for _ in range(4):
        scene.give(1)
    assert [room for room, _ in scene.gone] == ["first", "second"] * 2  # type: ignore[misc]


def test_who_waits_again_comes_first_and_holds_up_nobody() -> None:
    scene = Scene(10)
    scene.enter("a", "plain")
    scene.enter("a", "picky", picky=True, again=True)
    scene.enter("b", "again", again=True)
    scene.give(2)
    assert scene.gone == ["again", "plain"]
    assert len(scene.rooms[0]) == 1


def test_a_full_room_takes_nobody() -> None:
    scene = Scene(1)
    ticket = scene.enter("a", 1)
    assert scene.rooms[0].enter("b", lambda: True) is None
    scene.rooms[0].leave(ticket)
    scene.rooms[0].leave(ticket)
    scene.enter("b", 2)
    assert len(scene.rooms[0]) == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["enter", "again", "leave", "give"])), max_size=60))
def test_nobody_is_lost_or_called_twice(steps: list[tuple[str, str]]) -> None:
    scene, dice = Scene(8), random.Random(0)
    room: WaitingRoom = scene.rooms[0]
    waiting: dict[int, Ticket] = {}
    for n, (owner, step) in enumerate(steps):
        if step == "give":
            scene.give(1)
            scene.free = 0
            waiting = {n: ticket for n, ticket in waiting.items() if n not in scene.gone}
        elif step == "leave" and waiting:
            room.leave(waiting.pop(dice.choice(list(waiting))))
        elif step != "leave" and len(room) < room.size:
            waiting[n] = scene.enter(owner, n, again=step == "again")
        assert len(room) == len(waiting)
    scene.give(100)
    assert not room
    assert len(scene.gone) == len(set(scene.gone))
    assert set(waiting) <= set(scene.gone)


# In the gateway.


ONE_AT_ONCE = "max_in_flight = 1\nqueue = {requests = 2, wait_s = 60}"


class Gate:
    """An engine that answers when it is told to: once for each ``open``."""

    def __init__(self, make: Engines) -> None:
        self.tickets = 0
        self.engine = make(self._behave)

    def open(self) -> None:
        self.tickets += 1

    def _behave(self, talk: Talk, _: Seen) -> None:
        while not self.tickets:
            time.sleep(0.002)
        self.tickets -= 1
        talk.say(whole())


def waiting(gw: Gateway, count: int) -> None:
    gw.until('queued{model="m"}', count)


def test_requests_wait_in_their_order_for_an_engine_with_room(engine: Engines, gateway: Gateways) -> None:
    gate = Gate(engine)
    gw = gateway(model(gate.engine.url, more=ONE_AT_ONCE))
    clients: list[Client] = []
    for n in range(3):
        clients.append(gw.client().send(post(body(n=n))))
        gw.until("requests_in_flight", n + 1)
    waiting(gw, 2)
    for n, client in enumerate(clients):
        gate.open()
        answer = client.answer()
        assert answer.status == 200
        assert ("queue;dur=" in (answer.header("server-timing") or "")) == (n > 0)
        assert [seen.json["n"] for seen in gate.engine.seen][: n + 1] == list(range(n + 1))
    waiting(gw, 0)


def test_a_full_queue_says_so_and_when_to_come_back(engine: Engines, gateway: Gateways) -> None:
    one = engine(silent)
    gw = gateway(model(one.url, more=ONE_AT_ONCE))
    clients = [gw.client().send(post(body())) for _ in range(3)]
    waiting(gw, 2)
    answer = gw.ask(body())
    assert (answer.status, answer.error["code"]) == (503, "queue_full")
    assert answer.header("retry-after") is not None
    for client in clients:
        client.close()
    waiting(gw, 0)
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 0)
    assert len(one.seen) <= 1 + 2


def test_without_a_queue_nobody_waits(engine: Engines, gateway: Gateways) -> None:
    one = engine(silent)
    gw = gateway(model(one.url, more="max_in_flight = 1"))
    gw.client().send(post(body()))
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 1)
    assert gw.ask(body()).error["code"] == "queue_full"


def test_who_waits_too_long_is_told_so(engine: Engines, gateway: Gateways) -> None:
    one = engine(silent)
    gw = gateway(model(one.url, more="max_in_flight = 1\nqueue = {requests = 2, wait_s = 0.2}"))
    gw.client().send(post(body()))
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 1)
    answer = gw.ask(body())
    assert (answer.status, answer.error["code"]) == (503, "queue_timeout")
    assert answer.header("retry-after") is not None
    assert len(one.seen) == 1


def test_a_client_that_leaves_the_queue_gives_up_its_place(engine: Engines, gateway: Gateways) -> None:
    gate = Gate(engine)
    gw = gateway(model(gate.engine.url, more=ONE_AT_ONCE))
    first = gw.client().send(post(body(n=0)))
    gw.until(f'engine_in_flight{{engine="{gate.engine.name}"}}', 1)
    leaver = gw.client().send(post(body(n=1)))
    waiting(gw, 1)
    last = gw.client().send(post(body(n=2)))
    waiting(gw, 2)
    leaver.close()
    waiting(gw, 1)
    gate.open()
    gate.open()
    assert [first.answer().status, last.answer().status] == [200, 200]
    assert [seen.json["n"] for seen in gate.engine.seen] == [0, 2]
    assert gw.metrics()[f'requests_total{{route="{CHAT}",model="m",status="0",outcome="client_left"}}'] == 1


@pytest.mark.parametrize("how", ["leaves", "breaks"])
def test_a_seat_is_free_again_however_a_request_ends(engine: Engines, gateway: Gateways, how: str) -> None:
    def behave(talk: Talk, seen: Seen) -> None:
        if seen.json["n"] != 0:
            talk.say(STREAM_HEAD, chunk(EVENT), chunk(DONE), END)
        elif how == "leaves":
            silent(talk, seen)
        else:
            while not broken:
                time.sleep(0.002)
            talk.reset()

    broken: list[bool] = []
    one = engine(behave)
    gw = gateway(model(one.url, more=ONE_AT_ONCE))
    first = gw.client().send(post(body(n=0)))
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 1)
    second = gw.client().send(post(body(n=1)))
    waiting(gw, 1)
    if how == "leaves":
        first.close()
    else:
        broken.append(True)
    assert second.answer().status == 200


def test_a_new_engine_takes_those_who_wait(engine: Engines, gateway: Gateways) -> None:
    gw = gateway(model(engine(silent).url, more=ONE_AT_ONCE))
    gw.client().send(post(body()))
    gw.until("requests_in_flight", 1)
    second = gw.client().send(post(body()))
    waiting(gw, 1)
    other = engine(answering())
    assert gw.control("POST", "/admin/engines", {"model": "m", "url": other.url})[0] == 201
    assert second.answer().header("x-withstand-engine") == other.name


def test_an_engine_that_is_full_is_not_asked_where_another_has_room(engine: Engines, gateway: Gateways) -> None:
    one, other = engine(silent), engine(answering())
    more = 'policy = "round_robin"'
    gw = gateway(model(one.url, more=more) + f'max_in_flight = 1\n[[models.m.engines]]\nurl = "{other.url}"\n')
    gw.client().send(post(body()))
    gw.until(f'engine_in_flight{{engine="{one.name}"}}', 1)
    client = gw.client()
    assert [client.send(post(body())).answer().status for _ in range(6)] == [200] * 6
    assert len(one.seen) == 1


def test_who_could_not_reach_its_engine_waits_for_the_other(engine: Engines, gateway: Gateways, nobody: str) -> None:
    gate = Gate(engine)
    gw = gateway(model(gate.engine.url, nobody, more='policy = "round_robin"\n' + ONE_AT_ONCE))
    first = gw.client().send(post(body()))
    gw.until(f'engine_in_flight{{engine="{gate.engine.name}"}}', 1)
    second = gw.client().send(post(body()))
    waiting(gw, 1)
    gate.open()
    gate.open()
    assert [first.answer().status, second.answer().status] == [200, 200]


def test_who_still_waits_at_the_end_is_told_so(engine: Engines, gateway: Gateways) -> None:
    gw = gateway("drain_s = 0.2\n" + model(engine(silent).url, more=ONE_AT_ONCE))
    first, second = gw.client().send(post(body())), gw.client()
    gw.until("requests_in_flight", 1)
    second.send(post(body()))
    waiting(gw, 1)
    gw.terminate()
    assert [first.answer().status, second.answer().status] == [503, 503]
    assert gw.process.wait(10) == 0
