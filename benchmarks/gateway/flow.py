"""Probes of speed: small requests, large prompts, streams. CPU is the gateway's, of all its processes."""

import math
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from benchmarks.gateway.gateways import BUSY, COLD, OURS
from benchmarks.gateway.native import NOTHING, Load, Seen, engines
from benchmarks.gateway.probe import Bench, Claim, Figures, Probe, Table, above_direct, claim, figure, ratio
from benchmarks.gateway.talk import await_that

TOKENS_PER_S: Final = 50
_RUST: Final = "vllm-router"
_PYTHON: Final = "production-stack"
_PACED_PERCENT: Final = 95
"""A gateway that falls behind finds several chunks in a read, and looks cheaper than it is."""
_ALL_START_S: Final = 10.0
_ANSWER_TOKENS: Final = 200
"""Four seconds, and with the 20 ms until the first one, 50 a second throughout."""
_RAMP_S: Final = 2.0
_FEW_TOKENS, _FEW_RAMP_S, _FEW_S = 25, 0.5, 30.0
"""Answers of half a second that begin in turn. Over two seconds they would begin in pairs, and wait for each other; and
fewer than 600 of them tell no p99."""
SMALL: Final = Load(connections=64, stream=False, bytes=256, tokens=1)
LARGE: Final = Load(connections=32, stream=False, bytes=40_000, tokens=1)


def _requests(load: Load) -> Callable[[Bench, str], Figures]:
    def measure(bench: Bench, name: str) -> Figures:
        with bench.before(name) as (gateway, _):
            seen, foreign = bench.load(gateway, msgspec.structs.replace(load, seconds=bench.seconds))
        whole = seen.whole_ms or NOTHING
        return {
            "req/s": seen.requests / seen.window_s,
            "CPU µs/request": seen.cpu_s * 1e6 / seen.requests if seen.cpu_s and seen.requests else math.nan,
            "p50 ms": whole.p50,
            "p99 ms": whole.p99,
            "failed": seen.failed,
            "foreign CPU %": foreign * 100,
        }

    return measure


def _small_judged(table: Table) -> Sequence[Claim]:
    return [
        ratio(table, "req/s", _RUST, 1.4, at_least=True),
        ratio(table, "req/s", _PYTHON, 25, at_least=True),
        ratio(table, "CPU µs/request", _RUST),
        claim(table, "failed", "", 0),
    ]


def _large_judged(table: Table) -> Sequence[Claim]:
    return [
        ratio(table, "req/s", _RUST, 1.0, at_least=True),
        ratio(table, "CPU µs/request", _RUST),
        claim(table, "failed", "", 0),
    ]


def _streams(
    connections: int, tokens: int = _ANSWER_TOKENS, ramp_s: float = _RAMP_S, at_least_s: float = 0.0
) -> Callable[[Bench, str], Figures]:
    def measure(bench: Bench, name: str) -> Figures:
        load = Load(connections=connections, tokens=tokens, ramp=ramp_s, seconds=max(bench.seconds, at_least_s))
        with bench.before(name) as (gateway, made):
            seen, foreign = bench.load(gateway, load)
            engine = made[0].set()
        delay, ttft = seen.delay_ms or NOTHING, seen.ttft_ms or NOTHING
        delivered = 100 * seen.chunks / (seen.window_s * TOKENS_PER_S * connections)
        paced = seen.cpu_s > 0 and delivered >= _PACED_PERCENT
        return {
            "delivered %": delivered,
            "CPU µs/chunk": seen.cpu_s * 1e6 / seen.chunks if paced else math.nan,
            "delay p50 ms": delay.p50,
            "delay p99 ms": delay.p99,
            "TTFT p50 ms": ttft.p50,
            "TTFT p99 ms": ttft.p99,
            "failed": seen.failed,
            "engine late p99 ms": (engine.late_ms or NOTHING).p99,
            "foreign CPU %": foreign * 100,
        }

    return measure


def _many_judged(table: Table) -> Sequence[Claim]:
    return [
        ratio(table, "CPU µs/chunk", _RUST, 0.9),
        claim(table, "delivered %", "%", 99.5, at_least=True),
        claim(table, "delay p50 ms", "ms", 0.2),
        ratio(table, "delay p99 ms", _RUST, 1.0),
        claim(table, "failed", "", 0),
    ]


def _few_judged(table: Table) -> Sequence[Claim]:
    added = [
        Claim(
            f"TTFT {at}, added by {name}",
            above_direct(table, f"TTFT {at} ms", name),
            "ms",
            most if name in {OURS, BUSY} else None,
        )
        for name in (OURS, BUSY, COLD, _RUST, "nginx")
        if name == OURS or name in table
        for at, most in (("p50", 0.3), ("p99", 0.4))
    ]
    return [
        *added,
        Claim("delay p50 of a chunk, added", above_direct(table, "delay p50 ms"), "ms"),
        Claim("failed", figure(table, "failed"), "", 0),
    ]


def _workers(bench: Bench, name: str) -> Figures:
    """One worker has its core to itself. Two share both cores with the load, so what they could do with cores of their
    own is reckoned from the CPU that a request takes of them.
    """
    seen = {count: _of_workers(bench, name, count) for count in (1, 2)}
    cpu = {count: each.cpu_s / each.requests if each.requests else math.nan for count, each in seen.items()}
    return {
        "req/s of 1": seen[1].requests / seen[1].window_s,
        "req/s of 2": seen[2].requests / seen[2].window_s,
        "CPU µs/request of 1": cpu[1] * 1e6,
        "CPU µs/request of 2": cpu[2] * 1e6,
        "times as much, by CPU": 2 * cpu[1] / cpu[2],
        "failed": sum(each.failed for each in seen.values()),
    }


def _of_workers(bench: Bench, name: str, count: int) -> Seen:
    cores = [bench.cores.client, bench.cores.server][:count]
    told = {"": f"workers = {count}"}
    with (
        engines(bench.cores.server, 1) as (engine,),
        bench.gateway(name, [engine.url], cores=cores, ours=told) as gateway,
    ):
        processes = 1 if count == 1 else 1 + count
        await_that(lambda: len(gateway.pids(cores[0])) >= processes, _ALL_START_S)
        return bench.load(gateway, msgspec.structs.replace(SMALL, seconds=bench.seconds))[0]


def _workers_judged(table: Table) -> Sequence[Claim]:
    return [claim(table, "times as much, by CPU", "", 1.8, at_least=True), claim(table, "failed", "", 0)]


FLOW: Final = {
    "small": Probe("64 connections, bodies of 256 bytes, not streamed", _requests(SMALL), _small_judged),
    "large": Probe("32 connections, bodies of 40 kB, not streamed", _requests(LARGE), _large_judged),
    "workers": Probe("one worker and two, small requests", _workers, _workers_judged, (OURS,)),
    "streams-10": Probe(
        "10 streams of 50 chunks a second", _streams(10, _FEW_TOKENS, _FEW_RAMP_S, _FEW_S), _few_judged
    ),
    "streams-500": Probe("500 streams of 50 chunks a second", _streams(500), _many_judged),
    "streams-1000": Probe("1,000 streams of 50 chunks a second", _streams(1000), _many_judged),
}
