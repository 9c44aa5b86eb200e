"""How often does `withstand compare` err, and how much does it find?

    python benchmarks/compare/calibration.py                 simulated queues: minutes on one core, no network
    python benchmarks/compare/calibration.py --real          the embedded engine against itself, and a paced server
                                                             against one that is 5 % slower; wants a quiet machine

A queue with one server, Poisson arrivals and lognormal service makes latencies that hang together as those of a busy
engine do. A *set* is what one comparison looks at: mean, median, p90 and p99, corrected together. "False" counts sets
in which any of them is called better or worse though both runs are of the same queue; "found" counts those in which a
queue that is slower by 5 % throughout is shown to be, in runs of the length that the tool asks for after a pilot.
"""

import argparse
import contextlib
import math
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from withstand.app.compare import compare_paths
from withstand.compare.build import Options
from withstand.compare.difference import Judge, Pair, corrected, pair_of
from withstand.compare.estimate import Estimate, of_mean, of_quantiles
from withstand.compare.shape import Comparison, Verdict
from withstand.testing.truth.process import TruthServer
from withstand.testing.truth.schedule import Schedule

_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
_WARM = 500
_SLOWER = 1.05
_PILOT = 2000
_LENGTH_MAX = 400_000


def latencies(n: int, load: float, rng: Random, service: Random) -> list[float]:
    """Of a queue that has been running for a while. Arrivals come from ``rng``, the work from ``service``."""
    waiting, found = 0.0, []
    for i in range(n + _WARM):
        work = service.lognormvariate(-0.125, 0.5)
        if i >= _WARM:
            found.append(waiting + work)
        waiting = max(0.0, waiting + work - rng.expovariate(load))
    return found


def estimates(series: Sequence[float]) -> dict[str, Estimate]:
    """What a comparison looks at."""
    ordered = sorted(series)
    found = {"mean": of_mean(math.fsum(series) / len(series), series)}
    told = {share: at(ordered, share) for share in _SHARES.values()}
    by_share = of_quantiles(told, series)
    found |= {name: by_share[share] for name, share in _SHARES.items()}
    return found


def at(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    return ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (place - low)


def pairs(one: dict[str, Estimate], other: dict[str, Estimate], *, one_schedule: bool) -> dict[str, Pair]:
    return {name: pair_of([one[name]], [other[name]], one_schedule=one_schedule) for name in one}


def verdicts(of: dict[str, Pair]) -> dict[str, Verdict]:
    """As ``compare`` gives them: corrected over the set."""
    tested = {name: pair.chance for name, pair in of.items() if pair.chance is not None}
    chances = dict(zip(tested, corrected(list(tested.values())), strict=True))
    judge = Judge(comparisons=len(tested), negligible_percent=1.0)
    return {
        name: judge.difference(pair, chances.get(name), lower_is_better=True, trusted=True).verdict
        for name, pair in of.items()
    }


def two_runs(n: int, load: float, seed: int, *, one_schedule: bool) -> tuple[list[float], list[float]]:
    """Of one queue; with one schedule, arrivals are the same and the work is not."""
    second = Random(f"{seed}/a") if one_schedule else Random(f"{seed}/c")
    return (
        latencies(n, load, Random(f"{seed}/a"), Random(f"{seed}/b")),
        latencies(n, load, second, Random(f"{seed}/d")),
    )


def false_rates(n: int, load: float, trials: int, *, one_schedule: bool) -> str:
    """One line of the table."""
    false = 0
    each: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    for seed in range(trials):
        one, other = two_runs(n, load, seed, one_schedule=one_schedule)
        found = verdicts(pairs(estimates(one), estimates(other), one_schedule=one_schedule))
        wrong = [name for name, verdict in found.items() if verdict in {Verdict.BETTER, Verdict.WORSE}]
        false += bool(wrong)
        each.update(wrong)
        unknown.update(name for name, verdict in found.items() if verdict is Verdict.UNKNOWN)
    names = ("mean", *_SHARES)
    cells = " | ".join(f"{100 * unknown[name] / trials:.0f}" for name in names)
    return f"| {load} | {n:,} | {100 * false / trials:.1f} | {cells} |"


def power(load: float, trials: int, *, one_schedule: bool) -> str:
    """One line: pilot, recommended length, and how often 5 % are found in runs of it."""
    found, lengths = 0, []
    for seed in range(trials):
        length = recommended(load, seed, one_schedule=one_schedule)
        lengths.append(length)
        one, other = two_runs(length, load, 10_000 + seed, one_schedule=one_schedule)
        slower = [value * _SLOWER for value in other]
        found += verdicts(pairs(estimates(one), estimates(slower), one_schedule=one_schedule))["mean"] is Verdict.WORSE
    middle = sorted(lengths)[len(lengths) // 2]
    return f"| {load} | {middle:,} | {max(lengths):,} | {100 * found / trials:.0f} |"


def recommended(load: float, seed: int, *, one_schedule: bool) -> int:
    """A pilot that cannot tell is made longer, as the tool asks for."""
    length = _PILOT
    while length < _LENGTH_MAX:
        one, other = two_runs(length, load, seed, one_schedule=one_schedule)
        of = pairs(estimates(one), estimates(other), one_schedule=one_schedule)
        judge = Judge(comparisons=len(of), negligible_percent=1.0)
        mean = of["mean"]
        if mean.error is not None:
            return min(_LENGTH_MAX, max(length, math.ceil(length * judge.lengths_needed(mean, math.log(_SLOWER)))))
        length = math.ceil(length * (mean.lengths_needed or 2.0))
    return _LENGTH_MAX


def simulated(trials: int) -> None:
    for one_schedule, title in ((False, "schedules of their own"), (True, "one schedule")):
        print(f"\nThe same queue twice, {title}: % of {trials} sets that are falsely told apart; % unknown\n")
        print("| load | requests | false % | mean unknown % | p50 | p90 | p99 |\n|---|---|---|---|---|---|---|")
        for load in (0.3, 0.7, 0.9):
            for n in (200, 1000, 4000):
                print(false_rates(n, load, trials, one_schedule=one_schedule), flush=True)
    for one_schedule, title in ((False, "schedules of their own"), (True, "one schedule")):
        print(f"\nA queue that is 5 % slower, {title}, at the recommended length\n")
        print("| load | requests (median) | requests (most) | mean found % |\n|---|---|---|---|")
        for load in (0.3, 0.7):
            print(power(load, max(20, trials // 5), one_schedule=one_schedule), flush=True)


def measured(folder: Path, name: str, base_url: str | None, requests: int, seed: int) -> Path:
    """One run in a process of its own; without an address, of the embedded engine. Both sides get one schedule."""
    path = folder / name
    target = ["--base-url", base_url, "--request-rate", "40"] if base_url else ["--max-concurrency", "2"]
    command = [sys.executable, "-m", "withstand", "run", *target, "--num-prompts", str(requests), "--seed", str(seed)]
    lengths = ["--input-len", "32", "--output-len", "16"]
    subprocess.run([*command, *lengths, "--quiet", "--output-dir", str(path)], check=False, capture_output=True)
    return path


@contextlib.contextmanager
def paced(factor: float) -> Iterator[str]:
    """160 ms an answer on average in sixteen slots: at 40 requests a second some wait for each other."""
    schedule = Schedule(ttft_ms=85 * factor, itl_ms=5 * factor, tokens=16, ttft_jitter="lognormal:0.5")
    with TruthServer(schedule, slots=16) as server:
        yield server.base_url


def told(one: Path, other: Path) -> Comparison:
    return compare_paths([str(one), str(other)], None, Options())


def is_told_apart(comparison: Comparison) -> bool:
    verdicts_given = {d.verdict for g in comparison.groups for row in g.rows for d in row.differences if d}
    return bool(verdicts_given & {Verdict.BETTER, Verdict.WORSE})


def is_found(comparison: Comparison) -> bool:
    rows = [row for group in comparison.groups for row in group.rows if row.metric == "e2el.mean"]
    return any(d.verdict is Verdict.WORSE for row in rows for d in row.differences if d)


def paced_trial(folder: Path, seed: int, requests: int) -> tuple[bool, bool]:
    """(Falsely told apart, found), by servers of their own: those of other trials sleep beside them."""
    with paced(1.0) as plain, paced(_SLOWER) as slower:
        one, other = (measured(folder, f"{side}{seed}", plain, requests, seed) for side in "ab")
        slow = measured(folder, f"c{seed}", slower, requests, seed)
    return is_told_apart(told(one, other)), is_found(told(one, slow))


def engine_trial(folder: Path, seed: int, requests: int) -> bool:
    """Whether the embedded engine is falsely told apart from itself, three runs of each side in turn.

    It wants the whole machine. Single runs would not do: what a shared machine does from one minute to the next is a
    difference between them, and a true one.
    """
    sides = [folder / f"e{seed}{side}" for side in "ab"]
    for repeat in range(3):
        for side in sides:
            measured(side, str(repeat), None, requests, seed)
    return is_told_apart(told(*sides))


def real_servers(trials: int, requests: int, jobs: int) -> None:
    """Counts, one line each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ThreadPoolExecutor(jobs) as pool:
            paced_found = list(pool.map(lambda seed: paced_trial(folder, seed, requests), range(trials)))
        false, found = (sum(column) for column in zip(*paced_found, strict=True))
        print(f"a paced server, {requests} requests: falsely told apart from itself in {false} of {trials}", flush=True)
        print(f"one that is 5 % slower, {requests} requests: found in {found} of {trials}", flush=True)


def real_engine(trials: int, requests: int) -> None:
    """A count, one line."""
    with tempfile.TemporaryDirectory() as name:
        false = sum(engine_trial(Path(name), seed, requests) for seed in range(trials))
    print(f"the embedded engine, 3 x {requests} requests: falsely told apart from itself in {false} of {trials}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--requests", type=int, default=1600, help="a run of the paced server, with --real")
    parser.add_argument("--engine-requests", type=int, default=100, help="a run of the embedded engine, with --real")
    parser.add_argument("--jobs", type=int, default=2, help="paced pairs side by side, with --real")
    arguments = parser.parse_args()
    if arguments.real:
        trials = min(arguments.trials, 20)
        if arguments.requests:
            real_servers(trials, arguments.requests, arguments.jobs)
        if arguments.engine_requests:
            real_engine(trials, arguments.engine_requests)
    else:
        simulated(arguments.trials)


if __name__ == "__main__":
    main()
