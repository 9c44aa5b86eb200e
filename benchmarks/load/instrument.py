"""The instruments of the load benchmarks: a truth server of known times, the C reference client, and how to compare.

The Go truth server and the C client are not shipped. ``WITHSTAND_TRUTH_BINARY`` and ``WITHSTAND_REFCLIENT`` name built
ones; without them the sources under ``WITHSTAND_SHARED`` (by default ``shared`` beside the checkout) are built once.
Where there is no Go server, withstand's own stands in; its ``name`` says so.

All times are ns on CLOCK_MONOTONIC, which all processes of a host share. It knows nothing of withstand's run folder.
"""

import itertools
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from withstand.stack.cache import cache_folder
from withstand.stack.ports import free_port
from withstand.testing import Schedule, TruthServer

_DUMP_S = 120.0


class AbsentError(Exception):
    """An instrument is not here; one sentence."""


class Cores(NamedTuple):
    """Who runs where."""

    server: int
    client: int

    @classmethod
    def of_this_machine(cls) -> "Cores":
        """The first core that we may use for the server, the last for the client."""
        usable = sorted(os.sched_getaffinity(0))
        if len(usable) < 2:
            raise AbsentError("Client and server need a core each, and this machine lends only one.")
        return cls(usable[0], usable[-1])


def on_core(core: int, command: list[str]) -> list[str]:
    """The same command, kept on one core with all that it starts."""
    return ["taskset", "--cpu-list", str(core), *command]


@contextmanager
def kept_awake(cores: Cores, *, wanted: bool = True) -> Iterator[None]:
    """On each of them something turns that all others go before (SCHED_IDLE), so that the core never sleeps.

    A core of a virtual machine that sleeps is the host's meanwhile. To wake it costs tens of µs, which its program
    pays, and what it had in its caches. On a machine of one's own (or with ``idle=poll``) nothing of this is seen.
    """
    turning = ["chrt", "--idle", "0", sys.executable, "-c", "while True: pass"]
    spinners = [subprocess.Popen(on_core(core, turning)) for core in (cores.server, cores.client)] if wanted else []
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


# Where they come from.


def go_truth_server() -> Path:
    """The Go truth server's binary."""
    return _found("WITHSTAND_TRUTH_BINARY", "truthserver/main.go", ["go", "build", "-o"], [])


def reference_client() -> Path:
    """The C reference client's binary."""
    return _found("WITHSTAND_REFCLIENT", "refclient/refclient.c", ["gcc", "-O2", "-o"], ["-lm"])


def _found(variable: str, source_name: str, compiler: list[str], libraries: list[str]) -> Path:
    """The binary that the variable names, or one built from the source."""
    if named := os.environ.get(variable):
        if not os.access(named, os.X_OK):
            raise AbsentError(f"{variable} names {named}, which is no program.")
        return Path(named)
    shared = Path(os.environ.get("WITHSTAND_SHARED") or Path(__file__).parents[2].parent / "shared")
    source = shared / "instruments" / source_name
    if not source.exists() or not shutil.which(compiler[0]):
        raise AbsentError(
            f"{source.name} and {compiler[0]}, which builds it, are not both here; name a built one by {variable}, "
            "or the folder of instruments/ by WITHSTAND_SHARED."
        )
    return built(source, compiler, libraries)


def built(source: Path, compiler: list[str], libraries: list[str]) -> Path:
    """Built into the cache, unless it is there and not older than its source and what lies beside it."""
    binary = cache_folder() / "instruments" / f"{source.parent.name}-{source.stem}"
    changed_s = max(path.stat().st_mtime for path in source.parent.iterdir())
    if not binary.exists() or binary.stat().st_mtime < changed_s:
        binary.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([*compiler, str(binary), str(source), *libraries], check=True)
    return binary


# The truth.


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the server answered it."""

    id: str
    """The answer's id, as the client could see it."""
    mark: str
    """What the client wrote into the request to know it again: see ``marked``."""
    ok: bool
    arrival_ns: int
    """When the server had read it."""
    wire_ns: int | None = None
    """When it passed the wire, if that was watched."""
    token_ns: list[int]
    """For each token, just before its write: no client can have seen it earlier."""
    late_ns_max: int
    """How late the server itself was, at worst, against its schedule."""


class Server(Protocol):
    """A truth server that runs."""

    name: str
    base_url: str
    pid: int

    def reset(self) -> None:
        """Forget what was served."""

    def truth(self) -> list[Truth]:
        """What was served, in order of arrival."""


def marked(number: int, ttft_ms: float = 50.0) -> str:
    """The body's field ``truth``: the TTFT wanted, and in its last digits, the ns, the request's number.

    The Go server's log tells the TTFT that was asked for, so the number stands in it, whatever the client.
    """
    return f"ttft={ttft_ms + number / 1e6:.6f}"


class _GoRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the Go server's log."""

    id: str
    outcome: str
    arrival_ns: int
    sched_ttft_ms: float
    late_max_us: float
    w_ns: list[int] = []

    def truth(self) -> Truth:
        return Truth(
            id=self.id,
            mark=f"ttft={self.sched_ttft_ms:.6f}",
            ok=self.outcome == "ok",
            arrival_ns=self.arrival_ns,
            token_ns=self.w_ns,
            late_ns_max=round(self.late_max_us * 1e3),
        )


class _GoServer:
    """The Go truth server, running."""

    name = "the Go truth server"

    def __init__(self, base_url: str, pid: int) -> None:
        self.base_url = base_url
        self.pid = pid
        self._decode = msgspec.json.Decoder(_GoRow).decode

    def reset(self) -> None:
        self._ask("/truth/reset", b"")

    def truth(self) -> list[Truth]:
        return [self._decode(line).truth() for line in self._ask("/truth?full=1").splitlines()]

    def _ask(self, path: str, body: bytes | None = None) -> bytes:
        with urllib.request.urlopen(self.base_url + path, body, timeout=_DUMP_S) as answer:
            return bytes(answer.read())


class _OwnServer:
    """withstand's own truth server: it takes some three times the CPU, so its core bears a third of the load."""

    name = "withstand's own truth server, for want of the Go one"

    def __init__(self, server: TruthServer) -> None:
        self._server = server
        self.base_url = server.base_url
        self.pid = server.pid or 0

    def reset(self) -> None:
        self._server.reset()

    def truth(self) -> list[Truth]:
        return [
            Truth(
                id=str(s.number),
                mark=str((s.body or {}).get("truth")),
                ok=s.done_ns is not None,
                arrival_ns=s.arrival_ns,
                token_ns=s.token_ns,
                late_ns_max=s.late_ns_max,
            )
            for s in self._server.truth()
        ]


@contextmanager
def truth_server(core: int, *, jitter: str = "none", ttft_ms: float = 50, itl_ms: float = 20) -> Iterator[Server]:
    """A truth server on its core: the Go one, else ours."""
    try:
        binary = go_truth_server()
    except AbsentError:
        schedule = Schedule(ttft_ms=ttft_ms, itl_ms=itl_ms, jitter=jitter)
        with TruthServer(schedule, keep_bodies=True) as own:
            _settle(own.pid or 0, core)
            yield _OwnServer(own)
        return
    default = f"ttft={ttft_ms:g},itl={itl_ms:g},jitter={jitter}"
    with _go_process(binary, core, default) as server:
        yield server


@contextmanager
def _go_process(binary: Path, core: int, default: str) -> Iterator[_GoServer]:
    command = [str(binary), "-port", str(free_port()), "-cpu", str(core), "-default", default]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            if words[:2] != ["truthserver", "ready"]:
                raise AbsentError(f"{binary} did not start; it says why above.")
            _settle(process.pid, core)
            yield _GoServer(words[2], process.pid)
        finally:
            process.kill()


def _settle(pid: int, core: int) -> None:
    """On its core, before all others where we may say so: the truth must not wait for a neighbour."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {core})
        with suppress(PermissionError):
            os.sched_setscheduler(int(task.name), os.SCHED_FIFO, os.sched_param(1))


# A client's rows against the truth.


class Seen(NamedTuple):
    """One request as a client saw it. ``key`` is the mark that it wrote, or the answer's id."""

    key: str
    sent_ns: int
    token_ns: list[int]
    unsure: Collection[int] = ()
    """Places in ``token_ns`` where the client itself says that it looked late: it shows no gap beside them."""


class Errors(NamedTuple):
    """What a client got wrong, in ns; each list in rising order, but ``delay_ns``."""

    matched: int
    unmatched: int
    """Requests of the client that the server does not know, or with another number of tokens."""
    ttft_ns: list[int]
    """For each request: its TTFT, seen - true, without a sign; true since the wire, else since the server read it."""
    server_ttft_ns: list[int]
    """The same, since the server read it: wrong by as much as its core was not free for it."""
    first_ns: list[int]
    """Of that, what the client has to answer for alone: the first token's stamp - the instant before its write."""
    itl_ns: list[int]
    """For each gap between two tokens that the client counts, seen - true, without a sign."""
    unsure_gaps: int
    """Gaps that it does not count."""
    delay_ns: list[int]
    """For each token, in order of requests: its stamp - the instant just before its write."""


def compare(seen: Iterable[Seen], truths: Iterable[Truth]) -> Errors:
    """Token by token."""
    known = {key: truth for truth in truths for key in (truth.id, truth.mark)}
    matched = unmatched = unsure = 0
    ttft_ns: list[int] = []
    server_ttft_ns: list[int] = []
    first_ns: list[int] = []
    itl_ns: list[int] = []
    delay_ns: list[int] = []
    for row in seen:
        truth = known.get(row.key)
        if truth is None or len(truth.token_ns) != len(row.token_ns) or not row.token_ns:
            unmatched += 1
            continue
        matched += 1
        late_ns = [ours - true for ours, true in zip(row.token_ns, truth.token_ns, strict=True)]
        wrong_ns = _gap_errors_ns(late_ns, row.unsure)
        unsure += len(late_ns) - 1 - len(wrong_ns)
        delay_ns += late_ns
        itl_ns += wrong_ns
        first_ns.append(late_ns[0])
        arrival_ns = truth.arrival_ns if truth.wire_ns is None else truth.wire_ns
        ttft_ns.append(abs(late_ns[0] + arrival_ns - row.sent_ns))
        server_ttft_ns.append(abs(late_ns[0] + truth.arrival_ns - row.sent_ns))
    ordered = (sorted(errors_ns) for errors_ns in (ttft_ns, server_ttft_ns, first_ns, itl_ns))
    return Errors(matched, unmatched, *ordered, unsure, delay_ns)


def _gap_errors_ns(late_ns: list[int], unsure: Collection[int]) -> list[int]:
    """A gap is as wrong as its two ends were not equally late."""
    pairs = enumerate(itertools.pairwise(late_ns))
    return [abs(b - a) for i, (a, b) in pairs if i not in unsure and i + 1 not in unsure]


def at_share(ordered: list[int], share: float) -> float:
    """The quantile of an ordered list, linear between neighbours; nan where there is nothing."""
    if not ordered:
        return float("nan")
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
