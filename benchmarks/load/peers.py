"""withstand beside other benchmark clients, each on one core, against a server of known times on another.

    python -m benchmarks.load.peers [--client NAME]… [--level TOKENS_PER_S]… [--seconds S] [--rounds N]

A cell: TTFT 50 ms, ITL 20 ms, 128 tokens an answer, requests at a constant rate where the client can keep one, else as
it sends them. An error is what the client said less what the server did. Every round is a row of its own, unpicked.
The instruments are those of ``must_hold.py``; the clients come from ``python -m benchmarks.peers.install``.
"""

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from benchmarks.load.instrument import AbsentError, Cores, Truth, at_share, on_core, truth_server
from benchmarks.load.meter import Meter
from benchmarks.peers.client import Case, Client, Said, Spread
from benchmarks.peers.clients import chosen, installed
from benchmarks.peers.home import home
from benchmarks.peers.run import Outcome, outcome, started
from benchmarks.peers.tokenizer import write_tokenizer

TOKENS: Final = 128
TTFT_MS: Final = 50
ITL_MS: Final = 20
LEVELS: Final = (1_000, 10_000, 20_000, 50_000, 100_000)
_ANSWER_S: Final = (TTFT_MS + (TOKENS - 1) * ITL_MS) / 1e3
_TIMEOUT_S: Final = 240.0
_FALLEN_BEHIND: Final = 0.6
"""A client that offers less of what was asked is not asked for more."""

HEADS: Final = (
    "client",
    "tok/s",
    "rps want/got",
    "late p99 ms",
    "TTFT err mean/p50/p99 ms",
    "TPOT err mean ms",
    "ITL err mean/p50/p99 ms",
    "CPU %",
    "µs/token",
    "RSS MB",
    "processes",
    "foreign CPU %",
)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A cell's outcome. None = not known, or not stated by the client."""

    client: str
    level: int
    want_rps: float
    got_rps: float | None = None
    late_p99_ms: float | None = None
    """Of arrivals, against the first + k / rate; None where the client keeps no rate."""
    ttft_error: Spread = Spread()
    tpot_error: Spread = Spread()
    itl_error: Spread = Spread()
    cpu_share: float | None = None
    us_per_token: float | None = None
    rss_mb: float | None = None
    processes: int | None = None
    foreign_share: float | None = None
    trouble: str | None = None

    def cells(self) -> tuple[str, ...]:
        """As the columns of ``HEADS`` have it."""
        if self.got_rps is None:
            known = (self.client, f"{self.level:,}", f"{self.want_rps:.1f}/-", self.trouble or "no report")
            return known + ("",) * (len(HEADS) - len(known))
        return (
            self.client,
            f"{self.level:,}",
            f"{self.want_rps:.1f}/{self.got_rps:.1f}",
            _text(self.late_p99_ms),
            _texts(self.ttft_error),
            _text(self.tpot_error.mean, 3),
            _texts(self.itl_error, 3),
            _text(self.cpu_share and self.cpu_share * 100, 0),
            _text(self.us_per_token, 1),
            _text(self.rss_mb, 0),
            str(self.processes or "-"),
            _text(self.foreign_share and self.foreign_share * 100, 0) + (f" ({self.trouble})" if self.trouble else ""),
        )


def measure(client: Client, level: int, seconds: float, cores: Cores) -> Row:
    """One client at one level."""
    rate_rps = level / TOKENS
    with tempfile.TemporaryDirectory(prefix=f"{client.name}-") as folder, truth_server(cores.server) as server:
        case = Case(
            base_url=server.base_url,
            folder=Path(folder) / "case",
            requests=max(10, round(rate_rps * seconds)),
            output_tokens=TOKENS,
            rate_rps=rate_rps,
            concurrency=max(1, round(rate_rps * _ANSWER_S)),
            tokenizer=write_tokenizer(home()),
        )
        with (
            started(client, case, tuple(on_core(cores.client, []))) as process,
            Meter(process.pid, cores.client) as meter,
        ):
            try:
                process.wait(_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                return Row(client=client.name, level=level, want_rps=rate_rps, trouble="does not end")
        ended = outcome(client, case, process.returncode)
        truths = [t for t in server.truth() if t.ok and len(t.token_ns) == TOKENS][-case.requests :]
    return row_of(client, level, ended, truths, meter)


def row_of(client: Client, level: int, ended: Outcome, truths: list[Truth], meter: Meter) -> Row:
    """What the client said, what the server did, and what the client took."""
    want_rps = level / TOKENS
    if ended.said is None or len(truths) < 2:
        return Row(client=client.name, level=level, want_rps=want_rps, trouble=ended.trouble)
    arrivals_ns = sorted(t.arrival_ns for t in truths)
    ttft, tpot, itl = errors(ended.said, truths)
    begin_ns, end_ns = meter.span(arrivals_ns[0], max(t.token_ns[-1] for t in truths))
    usage = meter.between(begin_ns, end_ns)
    tokens = sum(begin_ns <= at_ns <= end_ns for t in truths for at_ns in t.token_ns)
    return Row(
        client=client.name,
        level=level,
        want_rps=want_rps,
        got_rps=(len(arrivals_ns) - 1) * 1e9 / (arrivals_ns[-1] - arrivals_ns[0]),
        late_p99_ms=lateness_p99_ms(arrivals_ns, want_rps) if client.keeps_rate else None,
        ttft_error=ttft,
        tpot_error=tpot,
        itl_error=itl,
        cpu_share=usage.cpu_share,
        us_per_token=usage.cpu_ns / 1e3 / max(1, tokens),
        rss_mb=max((r.rss_bytes / 1e6 for r in meter.readings), default=None),
        processes=max((len(r.processes) for r in meter.readings), default=None),
        foreign_share=usage.foreign_share,
        trouble=ended.trouble,
    )


def lateness_p99_ms(arrivals_ns: list[int], rate_rps: float) -> float:
    """Of arrivals in order, against the first one + k / rate."""
    late_ns = [max(0, round(at_ns - arrivals_ns[0] - k * 1e9 / rate_rps)) for k, at_ns in enumerate(arrivals_ns)]
    return at_share(sorted(late_ns), 0.99) / 1e6


def errors(said: Said, truths: list[Truth]) -> tuple[Spread, Spread, Spread]:
    """(TTFT, TPOT, ITL), said - true, in ms."""
    ttft_ns = [t.token_ns[0] - t.arrival_ns for t in truths]
    tpot_ns = [round((t.token_ns[-1] - t.token_ns[0]) / (TOKENS - 1)) for t in truths]
    itl_ns = [b - a for t in truths for a, b in zip(t.token_ns, t.token_ns[1:], strict=False)]
    return _error(said.ttft_ms, ttft_ns), _error(said.tpot_ms, tpot_ns), _error(said.itl_ms, itl_ns)


def _error(said: Spread, true_ns: list[int]) -> Spread:
    ordered = sorted(true_ns)
    return Spread(
        _less(said.mean, sum(ordered) / len(ordered)),
        _less(said.p50, at_share(ordered, 0.5)),
        _less(said.p99, at_share(ordered, 0.99)),
    )


def _less(said_ms: float | None, true_ns: float) -> float | None:
    return None if said_ms is None else said_ms - true_ns / 1e6


def _texts(error: Spread, digits: int = 2) -> str:
    return "/".join(_text(value, digits) for value in (error.mean, error.p50, error.p99))


def _text(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def compare(clients: list[Client], levels: list[int], cell: Callable[[Client, int], list[Row]]) -> None:
    """Level by level, all clients beside each other; who has fallen behind is left out of what is heavier."""
    _print_line(HEADS)
    _print_line(["---"] * len(HEADS))
    for level in levels:
        for client in list(clients):
            rows = cell(client, level)
            for row in rows:
                _print_line(row.cells())
            if all((row.got_rps or 0) < _FALLEN_BEHIND * row.want_rps for row in rows):
                clients.remove(client)


def _print_line(cells: list[str] | tuple[str, ...]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure what is asked for, and print the table row by row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--client", action="append", default=[], metavar="NAME", help="Only this one; again for more.")
    parser.add_argument("--level", action="append", type=int, metavar="TOKENS_PER_S", help="Again for more.")
    parser.add_argument("--seconds", type=float, default=6.0, metavar="S", help="Of arrivals; 6 by default.")
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="Each cell so often; 1 by default.")
    asked = parser.parse_args()
    try:
        cores = Cores.of_this_machine()
    except AbsentError as e:
        raise SystemExit(str(e)) from None
    os.sched_setaffinity(0, os.sched_getaffinity(0) - {cores.client})  # the meter must not disturb the client
    compare(
        installed(chosen(asked.client)),
        sorted(asked.level or LEVELS),
        lambda client, level: [measure(client, level, asked.seconds, cores) for _ in range(asked.rounds)],
    )


if __name__ == "__main__":
    main()
