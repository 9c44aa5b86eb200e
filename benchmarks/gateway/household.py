"""Probes of what a gateway takes and keeps: start, memory, descriptors, gauges, and a long mixed load."""

import math
import random
import re
import statistics
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from benchmarks.gateway.gateways import GATEWAYS, KEY, MODEL, OURS, Running
from benchmarks.gateway.native import Engine, Load, Seen, started_client
from benchmarks.gateway.probe import Bench, Claim, Figures, Probe, Table, claim
from benchmarks.gateway.talk import await_that

_MB: Final = 1e6
_STARTS: Final = 3
_SETTLE_S: Final = 15.0
_FLAT_MB: Final = 5
"""Two pages of a heap that has huge ones; what leaks with each request or stream is more."""
_GAUGES: Final = re.compile(r"^withstand_gateway_(?:requests|engine)_in_flight(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


def start(bench: Bench, name: str) -> Figures:
    """From the command to the first answer, and what it takes then."""
    seconds, sizes = [], []
    for _ in range(_STARTS):
        with bench.before(name) as (gateway, _):
            seconds.append(gateway.start_s)
            sizes.append(sum(gateway.family(bench.cores.client).values()) / _MB)
    return {"start s": statistics.median(seconds), "idle RSS MB": statistics.median(sizes)}


def _start_judged(table: Table) -> Sequence[Claim]:
    return [claim(table, "start s", "s", 0.5), claim(table, "idle RSS MB", "MB", 60)]


def leak(bench: Bench, name: str) -> Figures:
    """20,000 requests and 1,000 streams that are left, after a first tenth of both."""
    with bench.before(name) as (gateway, (engine,)):
        engine.set(ttft_us=1000, itl_us=1000)
        _used(bench, gateway, 0.1)
        before = _holds(bench, gateway)
        begun = _used(bench, gateway, 1.0)
        await_that(lambda: _holds(bench, gateway)[1] <= before[1], _SETTLE_S)
        after = _holds(bench, gateway)
        busy = _in_flight(gateway) if name == OURS else math.nan
    return {
        "requests": begun,
        "RSS before MB": before[0] / _MB,
        "RSS grows MB": (after[0] - before[0]) / _MB,
        "descriptors more": after[1] - before[1],
        "in flight after": busy,
    }


def _used(bench: Bench, gateway: Running, share: float) -> int:
    many, few = round(20_000 * bench.scale * share), round(1000 * bench.scale * share)
    whole, _ = bench.load(gateway, Load(connections=64, stream=False, tokens=1, requests=max(64, many)))
    left, _ = bench.load(gateway, Load(connections=50, tokens=50, leave=5, requests=max(50, few)))
    return whole.begun + left.begun


def _holds(bench: Bench, gateway: Running) -> tuple[int, int]:
    """Resident bytes, and open descriptors."""
    family = gateway.family(bench.cores.client)
    return sum(family.values()), sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in family)


def _in_flight(gateway: Running) -> float:
    """All such gauges together."""
    return sum(map(float, _GAUGES.findall(_asked(gateway, "/metrics").decode())))


def _asked(gateway: Running, path: str, method: str = "GET", told: object = None) -> bytes:
    body = None if told is None else msgspec.json.encode(told)
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    asked = urllib.request.Request(f"http://127.0.0.1:{gateway.port}{path}", body, headers, method=method)
    with urllib.request.urlopen(asked, timeout=10) as answer:
        return bytes(answer.read())


def _leak_judged(table: Table) -> Sequence[Claim]:
    return [
        claim(table, "RSS grows MB", "MB", _FLAT_MB),
        claim(table, "descriptors more", "", 0),
        claim(table, "in flight after", "", 0),
    ]


def soak(bench: Bench, name: str) -> Figures:
    """Streams, requests and leaving clients, while one of three engines at a time is drained and started again."""
    with bench.before(name, 3, spread=True, ours={"model": "health = {every_s = 0.5}"}) as (gateway, made):
        for engine in made:
            engine.set(ttft_us=20_000, itl_us=10_000)
        _soaked(bench, gateway, 5.0)
        before = _holds(bench, gateway)
        with _restarts(gateway, made) as restarts:
            seen = _soaked(bench, gateway, bench.soak_s)
        await_that(lambda: _holds(bench, gateway)[1] <= before[1], _SETTLE_S)
        after, busy = _holds(bench, gateway), _in_flight(gateway)
    return {
        "minutes": seen[0].window_s / 60,
        "begun": sum(s.begun for s in seen),
        "failed": sum(s.failed for s in seen),
        **sum((Counter({f"failed: {kind}": n for kind, n in s.failures.items()}) for s in seen), Counter()),
        "restarts": len(restarts),
        "RSS grows MB": (after[0] - before[0]) / _MB,
        "descriptors more": after[1] - before[1],
        "in flight after": busy,
    }


def _soaked(bench: Bench, gateway: Running, seconds: float) -> list[Seen]:
    common = {"seconds": seconds, "ramp": 1.0, "warm": 0.0}
    loads = [
        Load(connections=50, tokens=100, **common),
        Load(connections=4, tokens=1, stream=False, bytes=2000, **common),
        Load(connections=10, tokens=100, leave=7, **common),
    ]
    clients = [started_client(load, bench.cores.server, gateway.port, gateway.header, []) for load in loads]
    return [client.seen() for client in clients]


@contextmanager
def _restarts(gateway: Running, made: Sequence[Engine]) -> Iterator[list[int]]:
    """One engine after another, as its owner would: drained, ended, started, put back; then the file is read again."""
    over = threading.Event()
    done: list[int] = []
    dice = random.Random(1)

    def go_on() -> None:
        while not over.wait(2.0):
            engine = dice.choice(made)
            seat = {"model": MODEL, "url": engine.url}
            _asked(gateway, "/admin/engines", "PATCH", {**seat, "draining": True})
            await_that(lambda engine=engine: _load_of(gateway, engine) == 0 or over.is_set(), 60.0)
            engine.end()
            time.sleep(0.2)
            engine.start()
            engine.set(ttft_us=20_000, itl_us=10_000)
            _asked(gateway, "/admin/engines", "PATCH", {**seat, "draining": False})
            _asked(gateway, "/admin/reload", "POST")
            done.append(engine.port)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield done
    finally:
        over.set()
        thread.join()


def _load_of(gateway: Running, engine: Engine) -> float:
    told = _asked(gateway, "/metrics").decode()
    gauge = re.search(rf'^withstand_gateway_engine_in_flight{{[^}}]*:{engine.port}"[^}}]*}} (\S+)$', told, re.MULTILINE)
    assert gauge is not None
    return float(gauge[1])


def _soak_judged(table: Table) -> Sequence[Claim]:
    return [
        claim(table, "failed", "requests", 0),
        claim(table, "restarts", "engines", 1, at_least=True),
        claim(table, "RSS grows MB", "MB", _FLAT_MB),
        claim(table, "descriptors more", "", 0),
        claim(table, "in flight after", "", 0),
    ]


HOUSEHOLD: Final = {
    "start": Probe("from the command to the first answer", start, _start_judged, tuple(GATEWAYS)),
    "leak": Probe(
        "20,000 requests and 1,000 streams that are left", leak, _leak_judged, (OURS, "vllm-router", "nginx")
    ),
    "soak": Probe("streams, requests, leaving clients; engines are restarted", soak, _soak_judged, (OURS,)),
}
