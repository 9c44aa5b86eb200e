"""What is gone through so that caches stay warm: only while there are requests, and heard of by nobody."""

import asyncio
import resource
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from engines import Behave, Engine, answering
from gateways import Gateway, body, model
from withstand.gateway import rehearsal
from withstand.gateway.config import config_of
from withstand.gateway.house import House
from withstand.gateway.rehearsal import Rehearsal

uvloop = pytest.importorskip("uvloop", reason="the gateway's extra is not installed")

Engines = Callable[[Behave], Engine]
Gateways = Callable[[str], Gateway]
KEY = "sk-of-somebody"
QUIET_S = 0.2
TRIES = 1000
TREE: dict[str, object] = {"models": {"m": {"engines": [{"url": "http://127.0.0.1:9"}]}}}


def in_a_house(play: Callable[[House, Rehearsal], Awaitable[None]], tree: dict[str, object]) -> None:
    async def rehearsed() -> None:
        house = House(config_of(tree), asyncio.get_running_loop(), local=True)
        of_it = Rehearsal(house, quiet_s=QUIET_S)
        try:
            await play(house, of_it)
        finally:
            of_it.close()
            await house.close()

    uvloop.run(rehearsed())


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(TRIES):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("It never came to that.")


@pytest.mark.parametrize(
    "more",
    [{}, {"keys": {"a": {"sha256": "0" * 64}}}, {"usage": {"ask": True}}, {"key_limits": {"rpm": 1}}],
    ids=["open", "keys", "usage", "limits"],
)
def test_it_goes_on_while_there_are_requests_and_no_longer(more: dict[str, object]) -> None:
    async def play(house: House, of_it: Rehearsal) -> None:
        await of_it.begin()
        await asyncio.sleep(QUIET_S)
        assert of_it.times == 0
        house.noted += 1
        await until(lambda: of_it.times > 5)
        await asyncio.sleep(2 * QUIET_S)
        at_rest = of_it.times
        await asyncio.sleep(QUIET_S)
        assert of_it.times == at_rest
        house.noted += 1
        await until(lambda: of_it.times > at_rest)
        assert not house.counts.requests
        assert not house.doors

    in_a_house(play, {**TREE, **more})


def test_closed_it_is_over() -> None:
    async def play(house: House, of_it: Rehearsal) -> None:
        await of_it.begin()
        house.noted += 1
        await until(lambda: of_it.times > 2)
        of_it.close()
        so_far = of_it.times
        await asyncio.sleep(QUIET_S)
        assert of_it.times == so_far

    in_a_house(play, TREE)


def test_where_there_are_no_connections_it_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "_HOST", "192.0.2.1")

    async def play(_: House, of_it: Rehearsal) -> None:
        with pytest.raises(OSError, match="assign requested address"):
            await of_it.begin()

    in_a_house(play, TREE)


@contextmanager
def all_taken_but(few: int) -> Iterator[None]:
    """Of the descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(int(each.name) for each in Path("/dev/fd").iterdir()) + 1
    with ExitStack() as kept:
        while kept.enter_context(Path("/dev/null").open()).fileno() < most:
            pass
        resource.setrlimit(resource.RLIMIT_NOFILE, (most + 1 + few, hard))
        kept.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        yield


@pytest.mark.parametrize("few", range(10))
def test_where_there_are_no_descriptors_it_cannot_begin(few: int) -> None:
    async def play(_: House, of_it: Rehearsal) -> None:
        with all_taken_but(few), pytest.raises(OSError, match="Too many open files"):
            await of_it.begin()

    in_a_house(play, TREE)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc tells how often a process slept")
def test_nobody_hears_of_it(engine: Engines, gateway: Gateways, tmp_path: Path) -> None:
    asked, log = engine(answering()), tmp_path / "access.jsonl"
    told = f'{model(asked.url)}[keys.a]\nsha256 = "{sha256(KEY.encode()).hexdigest()}"\nlimits = {{rpm = 2}}\n'
    gw = gateway(f'{told}[log]\npath = "{log}"\n')
    before_any = gw.sleeps()
    answers = [gw.ask(body(), more=f"authorization: Bearer {KEY}\r\n").status]
    afterwards = gw.sleeps()
    answers.append(gw.ask(body(), more=f"authorization: Bearer {KEY}\r\n").status)
    assert answers == [200, 200]
    assert afterwards > 2 * before_any
    counts = {name: value for name, value in gw.metrics().items() if name.startswith("requests_total")}
    assert sum(counts.values()) == 2
    assert len(asked.seen) == 2
    assert gw.stop() == ""
    assert len(log.read_text("utf-8").splitlines()) == 2


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="/proc tells how often a process slept")
def test_it_can_be_left_out(engine: Engines, gateway: Gateways) -> None:
    gw = gateway("cache_warming = false\n" + model(engine(answering()).url))
    before_any = gw.sleeps()
    assert gw.ask(body()).status == 200
    afterwards = gw.sleeps()
    assert afterwards < 2 * before_any
