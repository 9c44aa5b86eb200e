"""Is the limit that is found the true one, how sure is the interval, and how long does it take? In virtual time.

    python -m benchmarks.control.limits [--trials 20]      well-behaved servers, and the sweep that people do
    python -m benchmarks.control.limits --odd              servers that do what spoils such searches

Servers whose limit is known from very long runs; each search is repeated with other arrivals. The sweep: rates 5 %
apart, each held as long as its points need for the same precision, read off by the eye.
"""

import argparse
from collections.abc import Iterator, Sequence
from statistics import median

import msgspec
from msgspec.structs import replace

from withstand.control.kept import broken
from withstand.control.limit import Limit, limit_of
from withstand.control.probe import Probed
from withstand.control.repair import repaired
from withstand.control.search import Axis, Search
from withstand.spec import Promise, promise_of
from withstand.testing.queues import (
    Queue,
    batched,
    bimodal,
    cached,
    drifting,
    exponential,
    fixed,
    heavy_tailed,
    probed,
    stalling,
)

_HEADINGS = ("server", "promised", "true req/s", "interval holds", "error, median", "nine of ten", "time")
_SWEEP_HEADINGS = ("sweep", "ratio")
_PROBE_S = 600.0
_PROBES_MAX = 25
_LONG = 300_000
_SWEEP_STEP = 1.05
_SWEEP_RANGE = (0.4, 1.25)
SWEEP_S = (15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0)


class Server(msgspec.Struct, frozen=True):
    """A queue, what is promised of it, and where a search begins."""

    name: str
    queue: Queue
    promise: Promise
    start_rps: float
    between_rps: tuple[float, float]
    truths: tuple[Queue, ...] = ()
    """Of one that changes: what it is at its worst and at its best; its limit lies between theirs."""


SERVERS = (
    Server("M/D/1, 100 ms", Queue(1, fixed(0.1, 0.001)), promise_of("ttft:p95:400"), 5.0, (2.0, 10.0)),
    Server("8 slots, 400 ms each", Queue(8, fixed(0.05, 0.35)), promise_of("ttft:p90:150"), 4.0, (5.0, 20.0)),
    Server("4 slots, exponential", Queue(4, exponential(0.05, 0.35)), promise_of("ttft:p95:1000"), 1.0, (2.0, 10.0)),
    Server(
        "a batch that slows down", Queue(64, batched(0.05, 1.0, 0.05), 51), promise_of("tpot:p95:40"), 2.0, (2.0, 30.0)
    ),
)

_M_D_1 = fixed(0.1, 0.001)
_WARM_S, _DRIFT_S = 60.0, 3000.0


def _slow_at_first(at_s: float) -> float:
    return 3.0 if at_s < _WARM_S else 1.0


def _slower_by_and_by(at_s: float) -> float:
    return 1 + 0.1 * min(at_s / _DRIFT_S, 1.0)


ODD = (
    Server(
        "answers of 0.2 s and, one in ten, of 2 s",
        Queue(4, bimodal(0.05, 0.2, 2.0, 0.1)),
        promise_of("ttft:p95:1000"),
        1.0,
        (2.0, 14.0),
    ),
    Server(
        "answers of a heavy tail (Pareto, 2.2)",
        Queue(8, heavy_tailed(0.05, 0.5, 2.2)),
        promise_of("ttft:p95:1000"),
        2.0,
        (4.0, 18.0),
    ),
    Server(
        "thrice as slow in its first minute",
        Queue(1, drifting(_M_D_1, _slow_at_first)),
        promise_of("ttft:p95:400"),
        5.0,
        (2.0, 10.0),
        (Queue(1, _M_D_1),),
    ),
    Server(
        "still for 1 s every 20 s",
        Queue(1, stalling(_M_D_1, 20.0, 1.0)),
        promise_of("ttft:p90:400"),
        4.0,
        (1.0, 10.0),
    ),
    Server(
        "10 % slower after 3,000 s",
        Queue(1, drifting(_M_D_1, _slower_by_and_by)),
        promise_of("ttft:p95:400"),
        5.0,
        (2.0, 10.0),
        (Queue(1, _M_D_1), Queue(1, fixed(0.11, 0.0011))),
    ),
    Server(
        "a prefix cache that fills up",
        Queue(8, cached(0.05, 0.4, 0.4, 8.0)),
        promise_of("ttft:p90:800"),
        4.0,
        (2.0, 18.0),
    ),
)


def share_broken(server: Server, rate_rps: float, seed: int, count: int) -> float:
    """Of so many requests."""
    counts = [broken(record, server.promise) for record in server.queue.answers(rate_rps, seed, count)]
    return sum(bad for bad, _ in counts) / sum(of for _, of in counts)


def true_limits(server: Server) -> tuple[float, float]:
    """The lowest and the highest that it has."""
    limits = [true_limit(replace(server, queue=queue)) for queue in server.truths or (server.queue,)]
    return min(limits), max(limits)


def true_limit(server: Server) -> float:
    """By halving, each rate with very many requests."""
    low, high = server.between_rps
    for _ in range(12):
        middle = (low + high) / 2
        if share_broken(server, middle, 1, _LONG) > 1 - server.promise.share:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def found(server: Server, seed: int) -> tuple[Limit, float]:
    """By our search, and how long its loads were held together."""
    search = Search(promises=(server.promise,), start=server.start_rps)
    tried: list[Probed] = []
    total_s = 0.0
    while (load := search.next(repaired(tried, search.promises))) is not None and len(tried) < _PROBES_MAX:
        look, took_s = probed(server.queue, server.promise, load, 1000 * seed + len(tried), _PROBE_S, total_s)
        tried.append(Probed(load, look))
        total_s += took_s
    return limit_of(tried, Axis.RATE, search.promises), total_s


def swept(server: Server, true_rps: float, seed: int, length_s: float) -> tuple[float, float]:
    """By the sweep that people do: the last rate before the first that breaks its promise, and how long it took."""
    best = rate_rps = _SWEEP_RANGE[0] * true_rps
    total_s = 0.0
    while rate_rps < _SWEEP_RANGE[1] * true_rps:
        count = max(1, round(rate_rps * length_s))
        total_s += length_s
        if share_broken(server, rate_rps, 1000 * seed + round(100 * rate_rps), count) > 1 - server.promise.share:
            break
        best, rate_rps = rate_rps, rate_rps * _SWEEP_STEP
    return best, total_s


def _cells(server: Server, trials: int, *, sweep: bool) -> Iterator[str]:
    low_rps, high_rps = true_limits(server)
    searches = [found(server, seed) for seed in range(trials)]
    wrong = sorted(_off(limit.load, low_rps, high_rps) for limit, _ in searches if limit.load)
    ours_s = median(took_s for _, took_s in searches)
    yield from (server.name, str(server.promise))
    yield f"{low_rps:.2f}" if low_rps == high_rps else f"{low_rps:.2f} to {high_rps:.2f}"
    yield f"{sum(_holds(limit, low_rps, high_rps) for limit, _ in searches)} of {trials}"
    yield from (f"{median(wrong):.1%}", f"{_most(wrong):.1%}", f"{ours_s:,.0f} s")
    if sweep:
        sweep_s = sweep_as_good(server, high_rps, trials, _most(wrong))
        yield f"{sweep_s:,.0f} s" if sweep_s else "-"
        yield f"{ours_s / sweep_s:.2f}" if sweep_s else f"none of up to {SWEEP_S[-1]:g} s a rate was as good"


def _off(load: float, low_rps: float, high_rps: float) -> float:
    """How far a number is from the nearest that would be right."""
    return max(low_rps / load - 1, load / high_rps - 1, 0.0)


def _holds(limit: Limit, low_rps: float, high_rps: float) -> bool:
    low, high = limit.interval.low, limit.interval.high
    return low is not None and high is not None and low <= high_rps and low_rps <= high


def _most(wrong: list[float]) -> float:
    """Nine of ten are not farther off."""
    return wrong[int(0.9 * (len(wrong) - 1))]


def sweep_as_good(
    server: Server, true_rps: float, trials: int, wrong_most: float, lengths_s: Sequence[float] = SWEEP_S
) -> float | None:
    """How long the sweep takes whose errors are as small, in nine cases of ten; its step alone makes some of them."""
    for length_s in lengths_s:
        runs = [swept(server, true_rps, seed, length_s) for seed in range(trials)]
        if _most(sorted(abs(best / true_rps - 1) for best, _ in runs)) <= max(wrong_most, _SWEEP_STEP - 1):
            return median(took_s for _, took_s in runs)
    return None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--odd", action="store_true")
    asked = parser.parse_args()
    headings = _HEADINGS if asked.odd else _HEADINGS + _SWEEP_HEADINGS
    print(f"| {' | '.join(headings)} |")
    print(f"|{' --- |' * len(headings)}")
    for server in ODD if asked.odd else SERVERS:
        print(f"| {' | '.join(_cells(server, asked.trials, sweep=not asked.odd))} |", flush=True)


if __name__ == "__main__":
    main()
