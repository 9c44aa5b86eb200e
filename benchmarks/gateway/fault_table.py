"""What the client and the engine see when something fails, and how soon: the table of faults, of our gateway.

    python -m benchmarks.gateway.fault_table

One request each, after one that went well, through one gateway to one engine; one second is allowed to the first
byte, and between two.
"""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.gateway.gateways import OURS, Running
from benchmarks.gateway.native import Engine
from benchmarks.gateway.probe import Bench
from benchmarks.gateway.talk import Talk, await_that, never
from benchmarks.load.instrument import Cores

_WITHIN_S = 4.0
_MESSAGE = re.compile(rb'"message": ?"([^"]*)"')
_HEADINGS = ("what fails", "streaming", "the client sees", "after", "the engine sees")


class Fault(NamedTuple):
    """``spoil`` is told to the engine beforehand; ``acts`` is done once so many tokens are there."""

    name: str
    knobs: dict[str, int]
    acts: Callable[[Engine, Talk], object] | None = None
    at_token: int = 0


def _leaves(_: Engine, talk: Talk) -> None:
    talk.leave()


FAULTS = (
    Fault("nothing", {}),
    Fault("answers 503", {"status": 503}),
    Fault("answers 429", {"status": 429}),
    Fault("hangs", {"hang": 1}),
    Fault("stops after five tokens", {"hang": 2}),
    Fault("is slow (0.7 s)", {"ttft_us": 700_000, "delay_us": 700_000}),
    Fault("closes (FIN)", {"die_at": 10}),
    Fault("closes (RST)", {"die_at": 10, "reset": 1}),
    Fault("is killed", {"ttft_us": 300_000}, lambda engine, _: engine.end()),
    Fault("is killed in mid-stream", {}, lambda engine, _: engine.end(), 4),
    Fault("client leaves before the first byte", {"ttft_us": 900_000, "delay_us": 900_000}, _leaves),
    Fault("client leaves in mid-stream", {}, _leaves, 4),
)


def _rows(bench: Bench) -> Iterator[tuple[str, ...]]:
    for fault in FAULTS:
        for stream in (True, False):
            if fault.at_token and not stream:
                continue
            if fault.name.startswith("stops") and not stream:
                continue
            with bench.before(OURS, timeout_s=1, ours={"timeouts": "idle_s = 1"}) as (gateway, (engine,)):
                yield fault.name, "yes" if stream else "no", *_seen(fault, gateway, engine, stream=stream)


def _seen(fault: Fault, gateway: Running, engine: Engine, *, stream: bool) -> tuple[str, str, str]:
    """What the client sees, how soon after the fault, and what the engine sees."""
    engine.set(ttft_us=5_000, itl_us=5_000, delay_us=20_000)
    with Talk(gateway, stream=stream, tokens=5) as talk:
        talk.read(never, _WITHIN_S)
    engine.set(**fault.knobs, forget=1)
    with Talk(gateway, stream=stream, tokens=20) as talk:
        began_ns = talk.sent_ns
        if fault.acts is not None:
            if fault.at_token:
                talk.read(lambda t: t.tokens >= fault.at_token, _WITHIN_S)
            else:
                await_that(lambda: engine.set().requests > 0, _WITHIN_S)
            time.sleep(0.01)
            began_ns = time.monotonic_ns()
            fault.acts(engine, talk)
        if fault.acts is _leaves:
            await_that(lambda: bool(engine.left()), _WITHIN_S)
            left = engine.left()
            after = f"{(left[0].at_ns - began_ns) / 1e6:.2f} ms" if left else "never"
            return "—", after, "the connection closed" if left else "nothing"
        talk.read(never, _WITHIN_S)
        after = f"{(time.monotonic_ns() - began_ns) / 1e6:,.1f} ms"
    if engine.ended:
        return _answer(talk, stream=stream), after, "—"
    asked = engine.set().requests
    left = f", {len(engine.left())} connection closed on it" if engine.left() else ""
    return _answer(talk, stream=stream), after, f"{asked} request{'' if asked == 1 else 's'}{left}"


def _answer(talk: Talk, *, stream: bool) -> str:
    head, _, body = talk.bytes.partition(b"\r\n\r\n")
    told = _MESSAGE.search(body)
    parts = [str(talk.status) if talk.status else "no answer"]
    if b"retry-after" in head.lower():
        parts.append("Retry-After")
    if stream and talk.status == 200:
        parts.append(f"{talk.tokens} tokens")
        parts.append("error event" if b'"error"' in body else "no error event")
        parts.append("[DONE]" if b"[DONE]" in body else "no [DONE]")
    if told and b'"error"' in body:
        parts.append(f"“{told[1].decode()}”")
    if talk.ended:
        parts.append(talk.ended)
    return ", ".join(parts)


def main() -> None:
    """Print the table."""
    cores = Cores.of_this_machine()
    os.sched_setaffinity(0, os.sched_getaffinity(0) - {cores.client})
    print(f"| {' | '.join(_HEADINGS)} |")
    print(f"|{' --- |' * len(_HEADINGS)}")
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        for row in _rows(Bench(cores, Path(folder), 1.0, 0.0, 1.0)):
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
