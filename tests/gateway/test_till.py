"""A configuration that changes while requests are under way: limits are new, what was counted stays."""

import asyncio
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import msgspec
import pytest

from withstand.gateway.config import Config, config_of
from withstand.gateway.counts import Counts, Ending, Outcome
from withstand.gateway.keys import Key
from withstand.gateway.money.books import Books
from withstand.gateway.money.rows import Slot
from withstand.gateway.money.stores.store import MemoryStore
from withstand.gateway.money.till import Permit, Till
from withstand.gateway.refusals import Refusal
from withstand.gateway.routes import ROUTES

ROUTE = ROUTES["/v1/chat/completions"]
ALICE = Key("alice")
BODY = b'{"model":"m","max_tokens":10}'
HASH = "5ca24005b740717ba4f3f6bc48a230700e68c2a4b11ecedb96f169f4efaf1f21"


def configured(**key: Any) -> Config:
    told = {"models": {"m": {}}, "prices": {"m": {"input": 1000, "output": 1000}}, "state": "x"}
    return config_of({**told, "keys": {"alice": {"sha256": HASH, **key}}})


Make = Callable[[Config], Till]


@pytest.fixture
def till_of() -> Iterator[Make]:
    loop = asyncio.new_event_loop()
    made: list[Till] = []

    def make(config: Config) -> Till:
        made.append(Till(config, Counts(), Books(MemoryStore(), loop, print)))
        return made[-1]

    yield make
    for till in made:
        till.close()
    loop.close()


def admit(till: Till) -> Permit | Refusal | None:
    return None if till.idle else till.admit(ALICE, "m", BODY, ROUTE, 0.0)


def ended(**more: Any) -> Ending:
    told = Ending("r", ROUTE.path, "alice", "m", "e", 200, Outcome.OK, 0, None, None, 0, 3, 0, 2)
    return msgspec.structs.replace(told, **more)


def test_new_limits_hold_for_what_was_counted_before(till_of: Make) -> None:
    till = till_of(configured(limits={"rpm": 5, "concurrency": 5}))
    permits = [admit(till) for _ in range(2)]
    till.apply(configured(limits={"rpm": 2, "concurrency": 5}))
    assert isinstance(admit(till), Refusal)
    till.apply(configured(limits={"rpm": 5, "concurrency": 2}))
    assert isinstance(admit(till), Refusal)
    for permit in permits:
        assert isinstance(permit, Permit)
        assert till.settle(permit, ended(), 0.0).nusd == 5_000_000
    assert till.under_way() == {"alice": 0}
    assert isinstance(admit(till), Permit)


def test_keys_and_budgets_that_go_and_come_back_keep_what_was_spent(till_of: Make) -> None:
    till = till_of(configured(budget={"usd": 0.004, "per": "total"}))
    permit = admit(till)
    assert isinstance(permit, Permit)
    till.apply(config_of({"models": {"m": {}}}))
    till.settle(permit, ended(), 0.0)
    assert admit(till) is None
    till.apply(configured(budget={"usd": 0.001, "per": "total"}))
    assert isinstance(admit(till), Permit), "without a price it cost nothing"


def test_keys_alone_cost_no_request_any_counting(till_of: Make) -> None:
    assert admit(till_of(config_of({"models": {"m": {}}, "keys": {"alice": {"sha256": HASH}}}))) is None


def test_a_stream_keeps_its_last_pieces_and_knows_its_first(till_of: Make) -> None:
    till = till_of(configured())
    permit = till.admit(ALICE, "m", b'{"model":"m","stream":true}', ROUTE, 0.0)
    assert isinstance(permit, Permit)
    for number in range(100):
        permit.pieces.append(b'1\r\ndata: {"usage":{"input_tokens":%d}}\n\n\r\n' % number)
        if number % 7 == 0:
            till.look(0.0)
            assert len(permit.pieces) <= 4
    assert b'"input_tokens":0' in permit.first
    till.settle(permit, ended(prompt_tokens=None, output_tokens=None), 0.0)
    assert till._counts.used["alice"].completion_tokens == 97


def test_a_stream_that_outlives_the_limits_does_not_gather(till_of: Make) -> None:
    till = till_of(configured())
    permit = till.admit(ALICE, "m", b'{"model":"m","stream":true}', ROUTE, 0.0)
    assert isinstance(permit, Permit)
    till.apply(config_of({"models": {"m": {}}}))
    permit.pieces.extend([b"1\r\ndata: x\n\n\r\n"] * 100)
    till.look(0.0)
    assert len(permit.pieces) <= 4
    till.settle(permit, ended(prompt_tokens=None, output_tokens=None), 0.0)
    assert till._counts.used["alice"].completion_tokens == 97


def test_usage_is_read_to_the_last_request() -> None:
    async def read() -> None:
        loop = asyncio.get_running_loop()
        books = Books(MemoryStore(), loop, print)
        till = Till(configured(), Counts(), books)
        for count in range(1, 30):
            permit = admit(till)
            assert isinstance(permit, Permit)
            till.settle(permit, ended(), 0.0)
            if count % 3 == 0:
                books.flush(till._day)
            usage = await books.usage("0", "9")
            assert usage[Slot("alice", "m", till._day)].requests == count
        till.close()
        assert books.spent_nusd("alice", "total") == 29 * 5_000_000

    asyncio.run(read())


def test_where_there_may_be_no_thread_usage_is_kept_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def keep() -> None:
        books = Books(MemoryStore(), asyncio.get_running_loop(), print)
        till = Till(configured(), Counts(), books)
        for count in range(1, 4):
            permit = admit(till)
            assert isinstance(permit, Permit)
            till.settle(permit, ended(), 0.0)
            books.flush(till._day)
            usage = await books.usage("0", "9")
            assert usage[Slot("alice", "m", till._day)].requests == count
        till.close()
        assert books.spent_nusd("alice", "total") == 3 * 5_000_000

    monkeypatch.setattr(Thread, "start", never)
    asyncio.run(keep())


@pytest.mark.parametrize("body", [b"[]", b'{"stream_options":', b"\xff", b'{"n":1e400}'])
def test_bodies_that_cannot_be_estimated_are_the_engines_to_refuse(till_of: Make, body: bytes) -> None:
    assert isinstance(till_of(configured(limits={"tpm": 9})).admit(ALICE, "m", body, ROUTE, 0.0), Permit)
