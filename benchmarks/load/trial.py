"""One measured run of a client against a truth server: withstand as its users start it, or the C reference client.

Both are kept on the client's core. What they saw is held against the truth; what they took, against the clock.
"""

import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from benchmarks.load.instrument import (
    Cores,
    Errors,
    Seen,
    Server,
    Truth,
    at_share,
    compare,
    marked,
    on_core,
    reference_client,
)
from benchmarks.load.meter import Meter, Usage
from benchmarks.load.wire import Wire

from withstand.record import Record, Status
from withstand.runs import RunFolder

TTFT_MS, ITL_MS, TOKENS = 50, 20, 128
_WORDS = 32
LARGE_WORDS = 128_000
_SETTLED_NS = 500_000_000
_RUN_S_MAX = 5400


class Load(NamedTuple):
    """What is asked of the client."""

    requests: int
    rate_rps: float | None
    """Constant arrivals; None = a closed loop."""
    concurrency: int | None = None
    tokens: int = TOKENS
    stream: bool = True
    large_every: int = 0
    """Every n-th prompt has 128,000 words; 0 = none."""

    @classmethod
    def of_tokens(cls, tokens_per_s: float, seconds: float) -> "Load":
        """So many tokens a second, for so long."""
        rate_rps = tokens_per_s / TOKENS
        return cls(requests=max(20, round(rate_rps * seconds)), rate_rps=rate_rps)

    def is_large(self, number: int) -> bool:
        """Whether the request has a large prompt."""
        return bool(self.large_every) and number % self.large_every == self.large_every - 1

    def mark(self, number: int) -> str:
        """By which the server's log tells the request."""
        return marked(number, TTFT_MS if self.stream else 0)

    @property
    def answer_ns(self) -> int:
        """How long an answer takes."""
        return (TTFT_MS + ITL_MS * (self.tokens - 1)) * 1_000_000 if self.stream else 0


class Outcome(NamedTuple):
    """What came of it."""

    load: Load
    server: str
    """Its name."""
    truths: list[Truth]
    errors: Errors
    usage: Usage
    """In the steady time, when as many answers begin as end."""
    tokens_steady: int
    meter: Meter
    rss_bytes_max: int
    """The most that all processes of the client had together while they loaded."""

    @property
    def rate_rps(self) -> float:
        """Of the requests that the server saw: the slope of their number over time, so that no single one decides."""
        arrivals_ns = sorted(t.arrival_ns for t in self.truths)
        since_s = [(at_ns - arrivals_ns[0]) / 1e9 for at_ns in arrivals_ns]
        return statistics.linear_regression(since_s, range(len(since_s))).slope

    @property
    def cpu_us_per_token(self) -> float:
        """CPU of all processes of the client in the steady time, for each token of that time."""
        return self.usage.cpu_ns / 1e3 / self.tokens_steady if self.tokens_steady else float("nan")

    @property
    def wire_share(self) -> float:
        """Of the requests, those that were seen on the wire."""
        return statistics.fmean(t.wire_ns is not None for t in self.truths)

    @property
    def server_late_ms(self) -> float:
        """How late the server was in one of a hundred requests."""
        return at_share(sorted(t.late_ns_max for t in self.truths), 0.99) / 1e6


class Run(NamedTuple):
    """withstand's run: the outcome, and what withstand itself says of it."""

    outcome: Outcome
    records: list[Record]
    stage: dict[str, Any]
    """Of ``summary.json``."""

    @property
    def lost(self) -> int:
        """Requests without a whole answer, and answers of which we saw other tokens than were written."""
        failed = sum(r.status is not Status.OK for r in self.records)
        return self.outcome.load.requests - len(self.records) + failed + self.outcome.errors.unmatched

    @property
    def late_ns(self) -> list[int]:
        """Sent - planned, in rising order."""
        return sorted(r.sent_ns - r.scheduled_ns for r in self.records if r.sent_ns and r.scheduled_ns is not None)

    @property
    def tokens_a_read(self) -> float:
        """Tokens of one read have one stamp."""
        return sum(len(r.chunk_ns) for r in self.records) / max(1, sum(len(set(r.chunk_ns)) for r in self.records))

    @property
    def doubts(self) -> set[str]:
        """The kinds of all doubts of the stage."""
        return {doubt["kind"] for doubt in self.stage["doubts"]}


def run_withstand(server: Server, cores: Cores, load: Load, folder: Path, *, beside: list[str] | None = None) -> Run:
    """One run; ``beside`` is a neighbour on the client's core."""
    folder.mkdir(parents=True)
    plan = folder / "plan.json"
    plan.write_bytes(msgspec.json.encode(_plan(server, load, _dataset(load, folder))))
    server.reset()
    command = [sys.executable, "-m", "withstand", "run", str(plan), "--quiet", "--output-dir", str(folder / "run")]
    with ExitStack() as stack, (folder / "stderr").open("wb") as complaints:
        if beside:
            stack.enter_context(_started(on_core(cores.client, beside)))
        streams = {"stdout": subprocess.DEVNULL, "stderr": complaints}
        process = stack.enter_context(_started(on_core(cores.client, command), **streams))
        with Meter(process.pid, cores.client) as meter, Wire(int(_port(server))) as wire:
            process.wait(_RUN_S_MAX)
    if not (folder / "run" / "summary.json").exists():
        raise SystemExit(f"withstand did not finish: {(folder / 'stderr').read_text()[-500:]}")
    return _read_run(folder / "run", load, server, meter, wire.passed_ns)


def _port(server: Server) -> str:
    return server.base_url.rpartition(":")[2]


@contextmanager
def _started(command: list[str], **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block."""
    process = subprocess.Popen(command, **streams)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _dataset(load: Load, folder: Path) -> Path:
    path = folder / "requests.jsonl"
    with path.open("wb") as file:
        file.writelines(msgspec.json.encode(row) + b"\n" for row in _rows(load))
    return path


def _rows(load: Load) -> Iterator[dict[str, Any]]:
    small, large = " ".join(["hello"] * _WORDS), " ".join(["tok"] * LARGE_WORDS)
    for number in range(load.requests):
        prompt = large if load.is_large(number) else small
        yield {"prompt": prompt, "max_tokens": load.tokens, "truth": load.mark(number)}


def _plan(server: Server, load: Load, dataset: Path) -> dict[str, Any]:
    """One worker, no warm-up: the n-th record is then the n-th row of the dataset."""
    arrivals = {"kind": "inf"} if load.rate_rps is None else {"kind": "constant", "rate": load.rate_rps}
    return {
        "target": {"base_url": server.base_url, "stream": load.stream},
        "workload": {
            "dataset": "openai-jsonl",
            "path": str(dataset),
            "num_prompts": load.requests,
            "tokenizer": "estimate",
            "options": {"shuffle": False},
        },
        "stages": [{"arrivals": arrivals, "max_concurrency": load.concurrency}],
        "num_warmups": 0,
        "workers": 1,
    }


def _read_run(path: Path, load: Load, server: Server, meter: Meter, passed_ns: Mapping[str, int]) -> Run:
    run = RunFolder.open(path)
    epoch_ns = run.manifest.anchor.monotonic_ns
    records = sorted(run.records(0), key=lambda r: r.id)
    seen = (
        Seen(load.mark(r.id), r.sent_ns + epoch_ns, [t + epoch_ns for t in r.chunk_ns], frozenset(r.unsure))
        for r in records
        if r.sent_ns is not None and r.status is Status.OK and not load.is_large(r.id)
    )
    return Run(
        outcome=_outcome(load, seen, server, meter, passed_ns),
        records=records,
        stage=msgspec.json.decode((path / "summary.json").read_bytes())["stages"][0],
    )


class _RefRow(msgspec.Struct, frozen=True):
    """A line of the reference client's file."""

    id: str
    send_ns: int
    w_ns: list[int]


def run_reference(server: Server, cores: Cores, load: Load, folder: Path) -> Outcome:
    """The same load by the C reference client, with kernel stamps."""
    folder.mkdir(parents=True)
    rows = folder / "rows.jsonl"
    server.reset()
    command = [str(reference_client()), "-K", "-p", _port(server), "-n", str(load.requests)]
    command += ["-r", str(load.rate_rps), "-c", "5000", "-k", str(load.tokens), "-o", str(rows)]
    reference = _started(on_core(cores.client, command), stdout=subprocess.DEVNULL)
    with reference as process, Meter(process.pid, cores.client) as meter:
        process.wait(_RUN_S_MAX)
    decode = msgspec.json.Decoder(_RefRow).decode
    found = (decode(line) for line in rows.read_bytes().splitlines())
    return _outcome(load, (Seen(r.id, r.send_ns, r.w_ns) for r in found), server, meter, {})


def _outcome(load: Load, seen: Iterator[Seen], server: Server, meter: Meter, passed_ns: Mapping[str, int]) -> Outcome:
    truths = [msgspec.structs.replace(truth, wire_ns=passed_ns.get(truth.mark)) for truth in server.truth()]
    first_ns, last_ns = min(t.arrival_ns for t in truths), max(t.arrival_ns for t in truths)
    steady = meter.span(first_ns + max(load.answer_ns, _SETTLED_NS), last_ns)
    end_ns = max((t.token_ns[-1] for t in truths if t.token_ns), default=last_ns)
    return Outcome(
        load=load,
        server=server.name,
        truths=truths,
        errors=compare(seen, truths),
        usage=meter.between(*steady),
        tokens_steady=sum(steady[0] <= at_ns < steady[1] for t in truths for at_ns in t.token_ns),
        meter=meter,
        rss_bytes_max=max((r.rss_bytes for r in meter.readings if first_ns <= r.at_ns <= end_ns), default=0),
    )
