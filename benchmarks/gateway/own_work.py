"""What the gateway itself does for a request and for a chunk, in µs: no sockets, so the machine's noise is small.

    python -m benchmarks.gateway.own_work [--engines N] [--rest MS] [--profile]

The fastest of many short rounds: what is left when nobody disturbs. The kernel's part of a request is about as much
again, and of a chunk nearly everything. A chunk is one that goes through the loop; a spliced one does not come here.
With ``WITHSTAND_COMPILED=off`` in the environment the interpreter does all of it. On huge pages, as the gateway is:

    python -m withstand.huge_pages benchmarks.gateway.own_work
"""

import argparse
import asyncio
import cProfile
import gc
import os
import pstats
import statistics
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import uvloop

os.environ["WITHSTAND_SPLICE"] = "off"  # there are no sockets to splice

from withstand.gateway.config import config_of
from withstand.gateway.door import Door
from withstand.gateway.house import House
from withstand.gateway.link import Link

_ROUNDS, _TIMES = 2000, 30
_RESTS = 61
_KEY = "sk-local-test-key"
_PROMPT = (
    b'{"model":"mock","stream":%b,"max_tokens":1,"messages":[{"role":"user","content":"' + b"hello " * 28 + b'"}]}'
)
_WHOLE = (
    b'{"id":"cmpl-1","object":"chat.completion","created":1764280000,"model":"mock","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"hello"},"logprobs":null,"finish_reason":"length"}],'
    b'"usage":{"prompt_tokens":8,"completion_tokens":1,"total_tokens":9}}'
)
_EVENT = (
    b'data: {"id":"cmpl-1","object":"chat.completion.chunk","created":1764280000,"model":"mock","choices":[{"index":0,'
    b'"delta":{"content":"hello"},"logprobs":null,"finish_reason":null}]}\n\n'
)
_CHUNK = b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT)
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + _CHUNK
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(_WHOLE), _WHOLE)


class Nowhere(asyncio.Transport):
    """Takes everything."""

    def write(self, data: Any) -> None: ...
    def is_closing(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...
    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class Before:
    """A request that was there before, and has left a quiet connection."""

    def __init__(self, house: House) -> None:
        self._house = house

    def answered(self, link: Link, head: bytes, read_ns: int) -> None:  # noqa: ARG002  nobody reads it
        link.flow(lambda _: None, lambda _: None)

    def began(self, read_ns: int) -> None: ...
    def finished(self, link: Link) -> None:
        link.engine.take_back(link, self._house.now_s())

    def lost(self, link: Link) -> None: ...
    def broke(self, link: Link, what: str) -> None: ...


def _request(*, stream: bool) -> bytes:
    body = _PROMPT % (b"true" if stream else b"false")
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {_KEY}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def _config(engines: int, folder: str) -> Any:
    urls = [{"url": f"http://127.0.0.1:{9000 + i}"} for i in range(engines)]
    keys = {"bench": {"sha256": sha256(_KEY.encode()).hexdigest()}}
    log = {"path": str(Path(folder) / "access.jsonl")}
    return config_of({"models": {"mock": {"engines": urls}}, "keys": keys, "log": log})


class Rig:
    """A gateway's inside: one client's door, and a quiet link to each engine."""

    def __init__(self, engines: int, folder: str) -> None:
        self.house = House(_config(engines, folder), asyncio.get_running_loop(), local=True)
        self.links: list[Link] = []
        for engine in self.house.roster.engines.values():
            link = Link(engine)
            link.connection_made(Nowhere())
            link.carry(Before(self.house), b"", b"")
            link.data_received(_ANSWER)
            self.links.append(link)
        self.door = Door(self.house, lambda *_: None)  # type: ignore[arg-type,return-value]
        self.door.connection_made(Nowhere())
        self._whole, self._stream = _request(stream=False), _request(stream=True)

    def request(self) -> None:
        """There and back."""
        self.door.data_received(self._whole)
        self._busy().data_received(_ANSWER)

    def begin_stream(self) -> Link:
        """The link that carries it."""
        self.door.data_received(self._stream)
        link = self._busy()
        link.data_received(_STREAM)
        return link

    def _busy(self) -> Link:
        if len(self.links) == 1:  # to look for it would cost more than some of what is measured
            return self.links[0]
        return next(link for link in self.links if link.passage is not None)


def _fastest_us(work: Callable[[], None], after: Callable[[], None]) -> float:
    found = []
    for _ in range(_ROUNDS):
        began_ns = time.perf_counter_ns()
        for _ in range(_TIMES):
            work()
        after()
        found.append((time.perf_counter_ns() - began_ns) / _TIMES / 1e3)
    return min(found)


def _rested_us(work: Callable[[], None], rest_s: float) -> float:
    """The median of some that come one at a time: by then others have had the core and its caches."""
    found = []
    for _ in range(_RESTS):
        time.sleep(rest_s)
        began_ns = time.perf_counter_ns()
        work()
        found.append((time.perf_counter_ns() - began_ns) / 1e3)
    return statistics.median(found)


async def _main(asked: argparse.Namespace, folder: str) -> None:
    rig = Rig(asked.engines, folder)
    gc.collect()
    gc.freeze()
    request_us = _fastest_us(rig.request, rig.house.ledger.flush)
    rested_us = _rested_us(rig.request, asked.rest / 1e3)
    if asked.profile:
        with cProfile.Profile() as profile:
            for _ in range(_ROUNDS * _TIMES):
                rig.request()
        pstats.Stats(profile).sort_stats("tottime").print_stats(60)
    link = rig.begin_stream()
    chunk_us = _fastest_us(lambda: link.data_received(_CHUNK), lambda: None)
    rest = f"after {asked.rest:g} ms of rest"
    print(f"a request {request_us:.1f} µs, {rest} {rested_us:.0f} µs, a chunk {chunk_us:.2f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engines", type=int, default=1)
    parser.add_argument("--rest", type=float, default=50.0, help="ms between requests that come one at a time")
    parser.add_argument("--profile", action="store_true", help="say where a request's time goes")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        uvloop.run(_main(asked, folder))


if __name__ == "__main__":
    main()
