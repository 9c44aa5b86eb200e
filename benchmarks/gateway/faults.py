"""Probes of behaviour: clients that leave, engines that are slow, ill, hung or gone, and bytes that must stay.

Figures that answer yes or no are 1 and 0.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from typing import Final

from benchmarks.gateway.gateways import DIRECT, GATEWAYS, Running
from benchmarks.gateway.native import NOTHING, Engine, Load
from benchmarks.gateway.probe import Bench, Claim, Figures, Probe, Table, claim
from benchmarks.gateway.talk import Talk, await_that, never

_PROXIES: Final = tuple(GATEWAYS)
_TRIES: Final = 7
_AFTER_CHUNK_S: Final = 0.004
_HEARD_S: Final = 0.02
"""The engine shares this process's core: whom it is asked for at once it hears of when we have done asking."""
_PREFILL_US: Final = 3_000_000
_NEVER_S: Final = 4.0


def leaves(bench: Bench, name: str) -> Figures:
    """How long after a client has left the engine's connection is closed."""
    with bench.before(name) as (gateway, (engine,)):
        found = {
            "in a stream": _leaving(gateway, engine, stream=True, prefill=False),
            "in prefill": _leaving(gateway, engine, stream=True, prefill=True),
            "not streamed": _leaving(gateway, engine, stream=False, prefill=True),
        }
    figures = {f"{what}, p50 ms": statistics.median(times) for what, times in found.items()}
    return {**figures, "max ms": max(max(times) for times in found.values())}


def _leaving(gateway: Running, engine: Engine, *, stream: bool, prefill: bool) -> list[float]:
    """In ms, some tries; nan = not within four seconds, and then it is not tried again."""
    engine.set(ttft_us=_PREFILL_US if prefill else 20_000, delay_us=_PREFILL_US)
    times: list[float] = []
    while len(times) < _TRIES and not any(map(math.isnan, times)):
        engine.set(forget=1)
        with Talk(gateway, stream=stream) as talk:
            if prefill:
                await_that(lambda: engine.set().requests > 0, _NEVER_S)
            else:
                talk.read(lambda t: t.tokens >= 4, _NEVER_S)
            time.sleep(_AFTER_CHUNK_S)
            left_ns = talk.leave()
        time.sleep(_HEARD_S)
        seen = await_that(lambda: bool(engine.left()), 0.6 * _PREFILL_US / 1e6)
        times.append((engine.left()[0].at_ns - left_ns) / 1e6 if seen else math.nan)
    engine.set(ttft_us=20_000, delay_us=0)
    return times if not any(map(math.isnan, times)) else [math.nan]


def _leaves_judged(table: Table) -> Sequence[Claim]:
    within = [claim(table, f"{what}, p50 ms", "ms", 1) for what in ("in a stream", "in prefill", "not streamed")]
    return [*within, claim(table, "max ms", "ms")]


def unlike(bench: Bench, name: str) -> Figures:
    """Two engines, one ten times slower: what share the slow one gets with 20 under way."""
    with bench.before(name, 2, spread=True) as (gateway, (fast, slow)):
        fast.set(ttft_us=5_000, itl_us=5_000, forget=1)
        slow.set(ttft_us=50_000, itl_us=50_000, forget=1)
        seen, _ = bench.load(gateway, Load(connections=20, tokens=20, requests=400, timeout=10))
        counts = [engine.set().streams for engine in (fast, slow)]
    return {
        "share of the slow one, %": 100 * counts[1] / max(1, sum(counts)),
        "of 400 s": seen.window_s,
        "p50 ms": (seen.whole_ms or NOTHING).p50,
        "p99 ms": (seen.whole_ms or NOTHING).p99,
        "failed": seen.failed,
    }


_IDEAL_SHARE: Final = 100 / 11
"""With as many under way at each: rates are as 10 to 1."""


def _unlike_judged(table: Table) -> Sequence[Claim]:
    share = table.get("withstand", {}).get("share of the slow one, %", math.nan)
    return [
        Claim("share of the slow one, off its ideal", abs(share - _IDEAL_SHARE), "points", 3),
        claim(table, "failed", "", 0),
    ]


def _two_hundred(bench: Bench, name: str, spoil: Callable[[Engine], object]) -> Figures:
    with bench.before(name, 2, spread=True) as (gateway, (good, bad)):
        for engine in (good, bad):
            engine.set(ttft_us=5_000, itl_us=5_000, forget=1)
        spoil(bad)
        seen, _ = bench.load(gateway, Load(connections=10, tokens=20, requests=200, timeout=10))
        asked = math.nan if bad.ended else bad.set().requests
    return {"served of 200": 200 - seen.failed, "bad one asked": asked, "of 200 s": seen.window_s}


def ill(bench: Bench, name: str) -> Figures:
    """Two engines, one answers 503 at once."""
    return _two_hundred(bench, name, lambda engine: engine.set(status=503))


def down(bench: Bench, name: str) -> Figures:
    """Two engines, one goes."""
    return _two_hundred(bench, name, lambda engine: engine.end())


def _all_served(table: Table) -> Sequence[Claim]:
    return [claim(table, "served of 200", "", 200, at_least=True), claim(table, "bad one asked", "times")]


def hung(bench: Bench, name: str) -> Figures:
    """An engine that takes a request and never answers; the gateway is to wait one second."""
    with bench.before(name, timeout_s=1) as (gateway, (engine,)):
        engine.set(hang=1, forget=1)
        with Talk(gateway) as talk:
            seconds = talk.read(never, 2 * _NEVER_S)
        times = engine.set(hang=0).requests
    answered = talk.status != 0
    return {
        "status": talk.status if answered else math.nan,
        "after s": seconds if answered else math.nan,
        "engine asked": times,
    }


def _hung_judged(table: Table) -> Sequence[Claim]:
    return [
        claim(table, "status", "", 504, at_least=True),
        claim(table, "after s", "s", 1.2),
        claim(table, "engine asked", "times", 1),
    ]


def dies(bench: Bench, name: str) -> Figures:
    """The engine breaks off after ten tokens, with a FIN and with a reset."""
    figures: dict[str, float] = {}
    for reset, how in enumerate(("FIN", "reset")):
        with bench.before(name) as (gateway, (engine,)):
            engine.set(die_at=10, reset=reset)
            with Talk(gateway, tokens=50) as talk:
                talk.read(never, _NEVER_S)
        body = talk.bytes.partition(b"\r\n\r\n")[2]
        figures[f"{how}: tokens"] = talk.tokens
        figures[f"{how}: error event"] = float(b'"error"' in body)
        figures[f"{how}: end looks whole"] = float(b"[DONE]" in body or (talk.ended is None and b'"error"' not in body))
    return figures


def _dies_judged(table: Table) -> Sequence[Claim]:
    return [
        *(claim(table, f"{how}: error event", "", 1, at_least=True) for how in ("FIN", "reset")),
        *(claim(table, f"{how}: end looks whole", "", 0) for how in ("FIN", "reset")),
    ]


_ODD: Final = (
    b'{"model": "mock",\n "messages" :[{"role":"user","content":"\\u00e9 \xc3\xa9 \\/"}],'
    b' "x_unknown": 1.50, "max_tokens":  7, "stream": %b }'
)


def same(bench: Bench, name: str) -> Figures:
    """Whether bodies arrive as they were sent, there and back."""
    with bench.before(name) as (gateway, (engine,)):
        engine.set(plain=1, ttft_us=1000, itl_us=1000)
        figures: dict[str, float] = {}
        direct = Running(DIRECT, engine.port, None, None, 0.0)
        for what, flag in (("stream", b"true"), ("whole", b"false")):
            body = _ODD % flag
            expected, got = _posted(direct, body), _posted(gateway, body)
            figures[f"{what}: answer same"] = float(expected == got)
            figures[f"{what}: request same"] = float(engine.last_body() == body)
    return figures


def _posted(to: Running, body: bytes) -> bytes:
    connection = HTTPConnection("127.0.0.1", to.port, timeout=_NEVER_S)
    header = dict([to.header.split(": ", 1)] if to.header else [])
    connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json", **header})
    answer = connection.getresponse().read()
    connection.close()
    return answer


def _same_judged(table: Table) -> Sequence[Claim]:
    sides = ("answer", "request")
    return [claim(table, f"{w}: {side} same", "", 1, at_least=True) for w in ("stream", "whole") for side in sides]


FAULTS: Final = {
    "same": Probe("bodies stay what they are", same, _same_judged, _PROXIES),
    "leaves": Probe("the client leaves; the engine's connection is closed after", leaves, _leaves_judged, _PROXIES),
    "unlike": Probe("two engines, one ten times slower; 20 under way, 400 in all", unlike, _unlike_judged, _PROXIES),
    "ill": Probe("two engines, one answers 503 at once", ill, _all_served, _PROXIES),
    "down": Probe("two engines, one goes", down, _all_served, _PROXIES),
    "hung": Probe("the engine never answers, and one second is allowed", hung, _hung_judged, _PROXIES),
    "dies": Probe("the engine breaks off after ten tokens", dies, _dies_judged, _PROXIES),
}
