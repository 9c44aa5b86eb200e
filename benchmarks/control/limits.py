"""Is the limit that is found the true one, how sure is the interval, and how long does it take? In virtual time.

    python -m benchmarks.control.limits [--trials 20]

Servers whose limit is known from very long runs; each search is repeated with other arrivals. Beside it the sweep that
people do: rates 5 % apart, each held as long as its points need for the same precision, read off by the eye.
"""

import argparse
from collections.abc import Iterator
from statistics import median

import msgspec

from withstand.control.kept import broken
from withstand.control.limit import Limit, limit_of
from withstand.control.probe import Probed
from withstand.control.repair import repaired
from withstand.control.search import Axis, Search
from withstand.spec import Promise, promise_of
from withstand.testing.queues import Queue, batched, exponential, fixed, probed

_HEADINGS = (
    "server", "promised", "true req/s", "interval holds", "error, median", "nine of ten", "time", "sweep", "ratio",
)  # fmt: skip
_PROBE_S = 600.0
_PROBES_MAX = 25
_LONG = 300_000
_SWEEP_STEP = 1.05
_SWEEP_RANGE = (0.4, 1.25)
_SWEEP_S = (15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0)


class Server(msgspec.Struct, frozen=True):
    """A queue, what is promised of it, and where a search begins."""

    name: str
    queue: Queue
    promise: Promise
    start_rps: float
    between_rps: tuple[float, float]


SERVERS = (
    Server("M/D/1, 100 ms", Queue(1, fixed(0.1, 0.001)), promise_of("ttft:p95:400"), 5.0, (2.0, 10.0)),
    Server("8 slots, 400 ms each", Queue(8, fixed(0.05, 0.35)), promise_of("ttft:p90:150"), 4.0, (5.0, 20.0)),
    Server("4 slots, exponential", Queue(4, exponential(0.05, 0.35)), promise_of("ttft:p95:1000"), 1.0, (2.0, 10.0)),
    Server(
        "a batch that slows down", Queue(64, batched(0.05, 1.0, 0.05), 51), promise_of("tpot:p95:40"), 2.0, (2.0, 30.0)
    ),
)


def share_broken(server: Server, rate_rps: float, seed: int, count: int) -> float:
    """Of so many requests."""
    counts = [broken(record, server.promise) for record in server.queue.answers(rate_rps, seed, count)]
    return sum(bad for bad, _ in counts) / sum(of for _, of in counts)


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
        look, took_s = probed(server.queue, server.promise, load, 1000 * seed + len(tried), _PROBE_S)
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


def _lines(server: Server, trials: int) -> Iterator[str]:
    true_rps = true_limit(server)
    searches = [found(server, seed) for seed in range(trials)]
    held = sum(_holds(limit, true_rps) for limit, _ in searches)
    wrong = sorted(abs(limit.load / true_rps - 1) for limit, _ in searches if limit.load)
    ours_s = median(took_s for _, took_s in searches)
    sweep_s = _sweep_as_good(server, true_rps, trials, _most(wrong))
    ratio = f"{ours_s / sweep_s:.2f}" if sweep_s else f"none of up to {_SWEEP_S[-1]:g} s a rate was as good"
    yield (
        f"| {server.name} | {server.promise} | {true_rps:.2f} | {held} of {trials} | {median(wrong):.1%} | "
        f"{_most(wrong):.1%} | {ours_s:,.0f} s | {f'{sweep_s:,.0f} s' if sweep_s else '-'} | {ratio} |"
    )


def _holds(limit: Limit, true_rps: float) -> bool:
    low, high = limit.interval.low, limit.interval.high
    return low is not None and high is not None and low <= true_rps <= high


def _most(wrong: list[float]) -> float:
    """Nine of ten are not farther off."""
    return wrong[int(0.9 * (len(wrong) - 1))]


def _sweep_as_good(server: Server, true_rps: float, trials: int, wrong_most: float) -> float | None:
    """How long the sweep takes whose errors are as small, in nine cases of ten; its step alone makes some of them."""
    for length_s in _SWEEP_S:
        runs = [swept(server, true_rps, seed, length_s) for seed in range(trials)]
        if _most(sorted(abs(best / true_rps - 1) for best, _ in runs)) <= max(wrong_most, _SWEEP_STEP - 1):
            return median(took_s for _, took_s in runs)
    return None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    trials = parser.parse_args().trials
    print(f"| {' | '.join(_HEADINGS)} |")
    print(f"|{' --- |' * len(_HEADINGS)}")
    for server in SERVERS:
        for line in _lines(server, trials):
            print(line, flush=True)


if __name__ == "__main__":
    main()
