"""The cells of must_hold.py: each loads a truth server with a client on a core of its own, and says what it found.

Every error is one of a single token or request, seen against true; "p99" is of those. "Late" is sent against planned.
"""

import math
import statistics
import sys
from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks.load.claims import NOT_MEASURED, Cell, Claim
from benchmarks.load.instrument import Cores, at_share, go_truth_server, truth_server
from benchmarks.load.trial import Load, Outcome, Run, run_reference, run_withstand

from withstand.metrics.doubts import DoubtKind

_NEIGHBOUR = [sys.executable, "-c", "while True: pass"]
_REFERENCE_TOKENS_PER_S = 50_000
_TWO_HOURS_REQUESTS = 36_000
"""Two hours of five requests a second."""
_EASY_TOKENS_PER_S = 20_000
_OWN_SERVER_TOKENS_PER_S = 20_000
_LATE_MS = 1.0
_LARGE_EVERY = 9
_MIXED_RPS = 20.0 * _LARGE_EVERY
"""Twenty large prompts a second, and eight small ones for each."""


class Bench(NamedTuple):
    """What the cells share."""

    cores: Cores
    folder: Path
    seconds: float
    rounds: int
    wall_s: float
    numbers: "count[int]"

    def fresh(self) -> Path:
        """A folder that is not there yet."""
        return self.folder / str(next(self.numbers))

    def withstand(self, load: Load, *, beside: list[str] | None = None, jitter: str = "none") -> Run:
        """One run of withstand against a server of its own.

        Raises:
            AbsentError: the load is more than our own server bears, and the Go one is not here.
        """
        if (load.rate_rps or _OWN_SERVER_TOKENS_PER_S) * load.tokens > _OWN_SERVER_TOKENS_PER_S:
            go_truth_server()
        with truth_server(self.cores.server, jitter=jitter) as server:
            return run_withstand(server, self.cores, load, self.fresh(), beside=beside)


def tokens(bench: Bench, tokens_per_s: int) -> Cell:
    """So many tokens a second, on one core."""
    run = bench.withstand(Load.of_tokens(tokens_per_s, bench.seconds))
    easy = tokens_per_s <= _EASY_TOKENS_PER_S
    claims = [_offered(run.outcome), *_fidelity(run, itl_ms=0.02 if easy else 0.1)]
    claims.append(Claim("CPU of a core, all processes", run.outcome.usage.cpu_share * 100, "%", 20 if easy else None))
    return Cell(_title(run.outcome), [*claims, *_costs(run)], [_conditions(run.outcome)])


def _title(outcome: Outcome) -> str:
    rate_rps = outcome.load.rate_rps or outcome.rate_rps
    return f"{rate_rps * outcome.load.tokens:,.0f} tokens/s as {rate_rps:,.1f} requests/s"


def _offered(outcome: Outcome) -> Claim:
    asked_rps = outcome.load.rate_rps or outcome.rate_rps
    return Claim("offered rate off by", abs(outcome.rate_rps / asked_rps - 1) * 100, "%", 0.1)


def _fidelity(run: Run, *, itl_ms: float = 0.1, unsure_percent: float | None = 1) -> list[Claim]:
    outcome, errors = run.outcome, run.outcome.errors
    return [
        Claim("ITL error p99", _p99_ms(errors.itl_ns), "ms", itl_ms),
        Claim("gaps not counted: their stamps are unsure", _unsure_percent(outcome), "%", unsure_percent),
        Claim("TTFT error p99", _p99_ms(errors.ttft_ns), "ms", 0.3),
        Claim("the same, had the request come when the server read it", _p99_ms(errors.server_ttft_ns), "ms"),
        Claim("of that, the first token's stamp, p99", _p99_ms(errors.first_ns), "ms"),
        Claim("requests or tokens lost", run.lost, "", 0),
        Claim("memory, all processes", outcome.rss_bytes_max / 1e6, "MB", 150),
    ]


def _p99_ms(ordered_ns: list[int]) -> float:
    return at_share(ordered_ns, 0.99) / 1e6


def _unsure_percent(outcome: Outcome) -> float:
    counted, unsure = len(outcome.errors.itl_ns), outcome.errors.unsure_gaps
    return 100 * unsure / max(1, counted + unsure)


def _costs(run: Run) -> list[Claim]:
    usage = run.outcome.usage
    return [
        Claim("CPU a token, all processes", run.outcome.cpu_us_per_token, "µs"),
        Claim("CPU of the worker", usage.busiest_cpu_ns / usage.wall_ns * 100, "%"),
        Claim("late p50", at_share(run.late_ns, 0.5) / 1e6, "ms"),
        Claim("late p99", _p99_ms(run.late_ns), "ms"),
        Claim("tokens a read", run.tokens_a_read),
    ]


def _conditions(outcome: Outcome) -> str:
    usage = outcome.usage
    server = (
        f"{outcome.server}, late by {outcome.server_late_ms:.2f} ms (p99); on the wire {outcome.wire_share:.0%} seen"
    )
    if math.isnan(usage.wall_ns):
        return f"{server}; CPU {NOT_MEASURED}"
    return (
        f"{server}; foreign CPU on the client's core {usage.foreign_share:.0%}, "
        f"the client was ready and had to wait {usage.waited_share:.0%} of the time"
    )


def neighbour(bench: Bench) -> Cell:
    """20,000 tokens a second beside a busy neighbour: the stamps stay true, and late sends are said to be late."""
    return _beside_neighbour(bench, 20_000)


def neighbour_half(bench: Bench) -> Cell:
    """The same with the most that half a core carries: 80 % of half a core by the cost of a token without neighbour."""
    alone = bench.withstand(Load.of_tokens(50_000, bench.seconds))
    carried = 0.8 * 0.5e6 / alone.outcome.cpu_us_per_token
    return _beside_neighbour(bench, int(carried // 1000 * 1000))


def _beside_neighbour(bench: Bench, tokens_per_s: int) -> Cell:
    run = bench.withstand(Load.of_tokens(tokens_per_s, bench.seconds), beside=_NEIGHBOUR)
    late_ms, said_ms = _p99_ms(run.late_ns), run.stage["self_check"]["lateness_p99_ms"]
    claims = [
        *_fidelity(run, unsure_percent=None),
        Claim(f"late p99: said - true ({said_ms:.3f} - {late_ms:.3f})", abs(said_ms - late_ms), "ms", _LATE_MS),
        Claim("the report doubts its sends", float(DoubtKind.SENDS_LATE in run.doubts)),
    ]
    return Cell(_title(run.outcome), [*claims, *_costs(run)], [_conditions(run.outcome)])


def short(bench: Bench) -> Cell:
    """Tiny whole answers over kept connections: the most in a closed loop, then the lateness at 4,000 a second."""
    tiny = Load(requests=round(20_000 * bench.seconds), rate_rps=None, concurrency=64, tokens=1, stream=False)
    most = bench.withstand(tiny)
    half = bench.withstand(tiny._replace(requests=round(4_000 * bench.seconds), rate_rps=4_000.0, concurrency=None))
    claims = [
        Claim("requests a second, closed loop of 64", most.outcome.rate_rps, "", 8_000, at_least=True),
        Claim("late p99 at 4,000 requests/s", _p99_ms(half.late_ns), "ms", _LATE_MS),
        Claim("lost", most.lost + half.lost, "", 0),
        Claim("CPU of the worker at 4,000 requests/s", _worker_percent(half.outcome), "%"),
        Claim("late p50 at 4,000 requests/s", at_share(half.late_ns, 0.5) / 1e6, "ms"),
    ]
    return Cell("tiny answers, not streamed", claims, [_conditions(most.outcome), _conditions(half.outcome)])


def _worker_percent(outcome: Outcome) -> float:
    return outcome.usage.busiest_cpu_ns / outcome.usage.wall_ns * 100


def exponential(bench: Bench) -> Cell:
    """Exponential gaps: what withstand's summary says of them, beside what the server did."""
    run = bench.withstand(Load.of_tokens(2_000, max(bench.seconds, 12)), jitter="exp")
    gaps_ns = sorted(b - a for t in run.outcome.truths for a, b in pairwise(t.token_ns))
    true_ms = {
        "median": at_share(gaps_ns, 0.5) / 1e6,
        "p99": _p99_ms(gaps_ns),
        "mean": statistics.fmean(gaps_ns) / 1e6,
    }
    claims = [
        Claim(f"ITL {name}: said - true ({said:.3f} - {true:.3f})", abs(said - true), "ms", 0.1)
        for name, true in true_ms.items()
        for said in [run.stage[f"{name}_itl_ms"]]
    ]
    claims.append(Claim("gaps not counted: their stamps are unsure", _unsure_percent(run.outcome), "%"))
    claims.append(Claim("tokens a read", run.tokens_a_read))
    return Cell("exponential ITL, mean 20 ms", claims, [_conditions(run.outcome)])


def soak(bench: Bench) -> Cell:
    """As many requests as two hours of five a second bring, in three minutes."""
    return _soaked(bench.withstand(Load(requests=_TWO_HOURS_REQUESTS, rate_rps=200.0)))


def wall(bench: Bench) -> Cell:
    """An hour, or ``--wall`` seconds, by the clock on the wall, at two requests a second."""
    return _soaked(bench.withstand(Load(requests=round(2 * bench.wall_s), rate_rps=2.0)))


def _soaked(run: Run) -> Cell:
    outcome = run.outcome
    delays_ns = _delay_medians_ns(outcome)
    minutes = (outcome.truths[-1].arrival_ns - outcome.truths[0].arrival_ns) / 60e9
    drift_ns = max(delays_ns) - min(delays_ns)
    offsets_ns = [r.wall_offset_ns for r in outcome.meter.readings]
    claims = [
        Claim("memory of all processes grows, in all", _mb_per_minute(outcome) * minutes, "MB", 5),
        Claim("stamp - write, medians of tenths of the time: max - min", drift_ns / 1e3, "µs", 20),
        Claim("wall clock - monotonic clock: max - min", (max(offsets_ns) - min(offsets_ns)) / 1e3, "µs"),
        *_fidelity(run),
        Claim("memory while the records are evaluated", max(r.rss_bytes for r in outcome.meter.readings) / 1e6, "MB"),
        *_costs(run),
    ]
    title = f"{outcome.load.requests:,} requests, {len(outcome.errors.delay_ns):,} tokens in {minutes:.1f} min"
    return Cell(title, claims, [_conditions(outcome)])


def _delay_medians_ns(outcome: Outcome) -> list[float]:
    """Of tenths of the tokens, in order of their requests: a clock that drifts away shows as a trend."""
    delays_ns = outcome.errors.delay_ns
    size = max(1, len(delays_ns) // 10)
    return [statistics.median(delays_ns[i : i + size]) for i in range(0, len(delays_ns) - size + 1, size)]


def _mb_per_minute(outcome: Outcome) -> float:
    """The slope of memory over time while requests arrive, without the first fifth."""
    first_ns, last_ns = outcome.truths[0].arrival_ns, outcome.truths[-1].arrival_ns
    begin_ns = first_ns + (last_ns - first_ns) // 5
    inside = [r for r in outcome.meter.readings if begin_ns <= r.at_ns <= last_ns]
    fit = statistics.linear_regression([r.at_ns / 60e9 for r in inside], [r.rss_bytes / 1e6 for r in inside])
    return fit.slope


def large(bench: Bench) -> Cell:
    """Twenty prompts of 128,000 words a second among small ones: the small ones' stamps, with and without."""
    load = Load(requests=round(_MIXED_RPS * bench.seconds), rate_rps=_MIXED_RPS)
    without = bench.withstand(load)
    among = bench.withstand(load._replace(large_every=_LARGE_EVERY))
    itl_ms = [_p99_ms(run.outcome.errors.itl_ns) for run in (without, among)]
    claims = [
        Claim("ITL error p99 of the small ones, without", itl_ms[0], "ms"),
        Claim("ITL error p99 of the small ones, among large ones", itl_ms[1], "ms", 0.1),
        Claim("TTFT error p99 of the small ones, without", _p99_ms(without.outcome.errors.ttft_ns), "ms"),
        Claim("TTFT error p99 of the small ones, among", _p99_ms(among.outcome.errors.ttft_ns), "ms"),
        Claim("late p99, without", _p99_ms(without.late_ns), "ms"),
        Claim("late p99, among large ones", _p99_ms(among.late_ns), "ms"),
        Claim("lost", without.lost + among.lost, "", 0),
        Claim("memory, all processes", among.outcome.rss_bytes_max / 1e6, "MB"),
    ]
    return Cell("20 prompts/s of 512 kB", claims, [_conditions(without.outcome), _conditions(among.outcome)])


def reference(bench: Bench) -> Cell:
    """CPU a token beside the C reference client, turn and turn about."""
    go_truth_server()
    load = Load.of_tokens(_REFERENCE_TOKENS_PER_S, bench.seconds)
    ours: list[Outcome] = []
    theirs: list[Outcome] = []
    with truth_server(bench.cores.server) as server:
        for _ in range(max(3, bench.rounds)):
            ours.append(run_withstand(server, bench.cores, load, bench.fresh()).outcome)
            theirs.append(run_reference(server, bench.cores, load, bench.fresh()))
    our_us, their_us = (statistics.median(o.cpu_us_per_token for o in outcomes) for outcomes in (ours, theirs))
    claims = [
        Claim("CPU a token, ratio to C", our_us / their_us, "", 1.3),
        Claim("CPU a token, withstand, all processes", our_us, "µs"),
        Claim("CPU a token, C", their_us, "µs"),
        Claim("ITL error p99, withstand", _median_itl_ms(ours), "ms"),
        Claim("ITL error p99, C with kernel stamps", _median_itl_ms(theirs), "ms"),
    ]
    return Cell(f"{_title(ours[0])}, medians of {len(ours)}", claims, [_conditions(o) for o in (*ours, *theirs)])


def _median_itl_ms(outcomes: list[Outcome]) -> float:
    return statistics.median(_p99_ms(o.errors.itl_ns) for o in outcomes)


def _tokens_cell(tokens_per_s: int) -> Callable[[Bench], Cell]:
    return lambda bench: tokens(bench, tokens_per_s)


MUST_HOLD: dict[str, Callable[[Bench], Cell]] = {
    "tokens-20k": _tokens_cell(20_000),
    "tokens-100k": _tokens_cell(100_000),
    "tokens-120k": _tokens_cell(120_000),
    "tokens-150k": _tokens_cell(150_000),
    "neighbour": neighbour,
    "neighbour-half": neighbour_half,
    "short": short,
    "exponential": exponential,
    "large": large,
    "reference": reference,
    "soak": soak,
}
CELLS = MUST_HOLD | {
    "tokens-1k": _tokens_cell(1_000),
    "tokens-5k": _tokens_cell(5_000),
    "tokens-10k": _tokens_cell(10_000),
    "tokens-50k": _tokens_cell(50_000),
    "wall": wall,
}
"""With the levels that only show the way there, and the hour by the wall."""
