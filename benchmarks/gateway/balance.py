"""Two engines, one worse than the other: who gets what, and what is lost. On loopback, with a gateway process.

    python -m benchmarks.gateway.balance [--requests 1000] [--at-once 20] [CASE …]

The engines answer after 0.1 s; the first of the two is slow (1 s), or answers an error at once, or is down. Exit
status 1 if ``least_inflight`` gives the slow one more or less than its ideal share (1/11) and 3 points, or loses a
request that the other engine could have served. The slow one ends what it has in batches, so that few requests, or a
machine that is busy with something else, blur its share.
"""

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from withstand.gateway.config import POLICY_NAMES
from withstand.stack.ports import free_port

FAST_S, SLOW_S = 0.1, 1.0
IDEAL = FAST_S / (FAST_S + SLOW_S)
POINTS = 0.03
CASES = {"slow": (SLOW_S, 200), "503": (0.0, 503), "500": (0.0, 500), "429": (0.0, 429), "down": None}
KEPT = {"slow", "503", "down"}
"""Where nothing may be lost. Any other error is the engine's word, and is passed on until the engine is left alone."""
BODY = b'{"model":"m"}'


class Engine:
    """One answer to everybody, after a time."""

    def __init__(self, after_s: float, status: int) -> None:
        self.asked = 0
        self._after_s = after_s
        self._answer = b"HTTP/1.1 %d X\r\ncontent-length: 2\r\n\r\n{}" % status

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        try:
            while await _message(reader):
                self.asked += 1
                await asyncio.sleep(self._after_s)
                writer.write(self._answer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        writer.close()


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    size = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    await reader.readexactly(int(size[1]) if size else 0)
    return head


async def _ask(port: int, left: list[None], statuses: Counter[int]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while left:
        left.pop()
        writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(BODY), BODY))
        statuses[int((await _message(reader))[9:12])] += 1
    writer.close()


async def _measure(policy: str, case: str, requests: int, at_once: int) -> tuple[float, int, int, float]:
    """(Share of the worse engine, requests that it saw, answers 200, seconds)."""
    told = CASES[case]
    worse, better = Engine(*(told or (0.0, 200))), Engine(FAST_S, 200)
    servers = [await asyncio.start_server(engine.serve, "127.0.0.1", 0) for engine in (worse, better)]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    if told is None:
        servers[0].close()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gateway.toml"
        engines = "".join(f'[[models.m.engines]]\nurl = "http://127.0.0.1:{port}"\n' for port in ports)
        path.write_text(f'listen = "127.0.0.1:{free_port()}"\n[models.m]\npolicy = "{policy}"\n{engines}', "utf-8")
        command = [sys.executable, "-m", "withstand.gateway", str(path)]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        port = re.search(rb":(\d+) ", await process.stdout.readline())
        assert port is not None
        statuses: Counter[int] = Counter()
        left: list[None] = [None] * requests
        begin_s = time.monotonic()
        await asyncio.gather(*(_ask(int(port[1]), left, statuses) for _ in range(at_once)))
        took_s = time.monotonic() - begin_s
        process.terminate()
        await process.wait()
    for server in servers:
        server.close()
    return worse.asked / (worse.asked + better.asked), worse.asked, statuses[200], took_s


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", default=list(CASES), help=", ".join(CASES))
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=20)
    usual = ["round_robin", "random", "least_inflight"]
    parser.add_argument("--policies", nargs="+", default=usual, choices=POLICY_NAMES)
    told = parser.parse_args()
    print("| the worse engine | policy | its share | asked it | ok | seconds |\n| --- | --- | --- | --- | --- | --- |")
    good = True
    for case in told.cases:
        for policy in told.policies:
            share, asked, ok, took_s = asyncio.run(_measure(policy, case, told.requests, told.at_once))
            print(f"| {case} | {policy} | {share:.3f} | {asked} | {ok} of {told.requests} | {took_s:.1f} |", flush=True)
            if policy == "least_inflight":
                good &= case not in KEPT or ok == told.requests
                good &= case != "slow" or abs(share - IDEAL) <= POINTS
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
