"""The two instruments: an engine that thinks nothing, and a client that is never in the way. Both are in C, built once.

They share a core, and keep up with more than 50,000 requests or chunks a second there. Linux and gcc.
"""

import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from benchmarks.load.instrument import built, on_core

from withstand.stack.ports import free_port

_NATIVE = Path(__file__).parent / "native"
_COMPILER = ["gcc", "-O2", "-o"]
_ANSWER_S = 5.0
_RUN_S_MAX = 3600.0


class Spread(msgspec.Struct, frozen=True):
    """Of some observations, in ms."""

    count: int
    p50: float
    p99: float
    max: float


NOTHING = Spread(0, *[float("nan")] * 3)


class Left(msgspec.Struct, frozen=True):
    """A request whose connection ended before its answer did, as the engine saw it."""

    at_ns: int
    number: int
    sent: int
    """Tokens."""
    stream: bool


class Counters(msgspec.Struct, frozen=True):
    """What the engine has done since it was told to forget."""

    requests: int
    streams: int
    chunks: int
    left: int
    open: int
    """Connections, now."""
    late_ms: Spread | None
    """Tokens, behind their schedule."""


class Engine:
    """It runs on a core, by its port; ``set`` turns its knobs (see engine.c)."""

    def __init__(self, core: int, port: int | None = None) -> None:
        self.port = port or free_port()
        self.core = core
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Again, where it was ended."""
        assert self._process is None
        binary = built(_NATIVE / "engine.c", _COMPILER, [])
        command = on_core(self.core, [str(binary), str(self.port)])
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise SystemExit(f"The engine did not start on port {self.port}; it says why above.")

    def end(self) -> None:
        """At once, with all its connections."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    @property
    def ended(self) -> bool:
        """It is not there at present."""
        return self._process is None

    def set(self, **knobs: int) -> Counters:
        """Turn knobs; what it counted until now."""
        query = "&".join(f"{name}={value}" for name, value in knobs.items())
        return msgspec.json.decode(self._get(f"/ctl?{query}"), type=Counters)

    def left(self) -> list[Left]:
        """The requests that were left."""
        return msgspec.json.decode(self._get("/events"), type=list[Left])

    def last_body(self) -> bytes:
        """Of the last request."""
        return self._get("/last")

    def _get(self, path: str) -> bytes:
        with urllib.request.urlopen(self.url + path, timeout=_ANSWER_S) as answer:
            return bytes(answer.read())


@contextmanager
def engines(core: int, count: int = 1) -> Iterator[list[Engine]]:
    """So many, that do not outlive the block."""
    made: list[Engine] = []
    try:
        made.extend(Engine(core) for _ in range(count))
        yield made
    finally:
        for engine in made:
            engine.end()


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the client saw in its window."""

    window_s: float
    begin_ns: int
    end_ns: int
    cpu_s: float
    """Of the watched processes."""
    requests: int
    chunks: int
    begun: int
    """In all of the run."""
    failures: dict[str, int]
    """In all of the run, by their kind."""
    delay_ms: Spread | None
    """Of each chunk: its read, less the instant before the engine's write."""
    first_delay_ms: Spread | None
    ttft_ms: Spread | None
    whole_ms: Spread | None

    @property
    def failed(self) -> int:
        """Of all kinds."""
        return sum(self.failures.values())


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What the client is to do: see client.c. ``requests`` 0 = as many as come in ``seconds``."""

    connections: int
    stream: bool = True
    tokens: int = 16
    bytes: int = 256
    requests: int = 0
    ramp: float = 0.2
    warm: float = 0.5
    seconds: float = 4.0
    leave: int = 0
    timeout: float = 30.0
    path: str = "/v1/chat/completions"

    def command(self, port: int, header: str | None, watched: list[int]) -> list[str]:
        """The client's command line."""
        told: Mapping[str, object] = {**msgspec.structs.asdict(self), "stream": int(self.stream), "port": port}
        options = [word for name, value in told.items() for word in (f"--{name}", str(value))]
        options += ["--header", header] if header else []
        return [*options, *(word for pid in watched for word in ("--watch", str(pid)))]


def started_client(load: Load, core: int, port: int, header: str | None, watched: list[int]) -> "Client":
    """The client, under way."""
    binary = built(_NATIVE / "client.c", _COMPILER, [])
    command = on_core(core, [str(binary), *load.command(port, header, watched)])
    return Client(subprocess.Popen(command, stdout=subprocess.PIPE))


class Client:
    """A run of the client."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def seen(self) -> Seen:
        """Wait for its end."""
        try:
            out, _ = self._process.communicate(timeout=_RUN_S_MAX)
        finally:
            self._process.kill()
        if self._process.returncode:
            raise SystemExit("The load client failed; it says why above.")
        return msgspec.json.decode(out, type=Seen)
