"""Does ``prefix`` find more of its prompts in engines' caches than others, and at what price in balance?

    python -m benchmarks.gateway.prefix [--engines 4] [--rounds 3]

Virtual time: the gateway's own policies, and engines as ``simulated`` has them. Exit status 1 if ``prefix`` has fewer
hits than ``round_robin``, a later p99 of TTFT, or more than half as much again on one engine.
"""

import argparse
import statistics
import sys

from benchmarks.gateway.simulated import CHATS, HOT, Load, Outcome, Simulation

LOADS = {"chats": CHATS, "hot": HOT}
CASES: list[dict[str, object]] = [
    {"policy": "round_robin"},
    {"policy": "random"},
    {"policy": "least_inflight"},
    *({"policy": "session", "load_bound": bound} for bound in (1.25, 1.5)),
    *({"policy": "prefix", "load_bound": bound} for bound in (1.25, 1.5, 2.0, 100.0)),
]


def main() -> int:
    """Print a table for each load."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    good = [_table(name, load, told.engines, told.rounds) for name, load in LOADS.items()]
    return 0 if all(good) else 1


def _table(name: str, load: Load, engines: int, rounds: int) -> bool:
    print(f"\n| {name} | bound | hits | TTFT p50 ms | p99 ms | work, most / mean | at once, most / mean |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    found = {}
    for case in CASES:
        outcomes = [Simulation(load, engines, seed, case).run() for seed in range(rounds)]
        found[case["policy"], case.get("load_bound")] = _row(case, outcomes)
    (hits, p99_s, work), (their_hits, their_p99_s, _) = found["prefix", 1.5], found["round_robin", None]
    return hits >= their_hits and p99_s <= their_p99_s and work <= 1.5


def _row(case: dict[str, object], outcomes: list[Outcome]) -> tuple[float, float, float]:
    """(Share of hits, p99 of TTFT in s, work of the busiest engine by the mean), medians of the rounds."""
    hits = statistics.median(o.hit_tokens / o.tokens for o in outcomes)
    p50_s, p99_s = (statistics.median(sorted(o.ttft_s)[int(len(o.ttft_s) * q)] for o in outcomes) for q in (0.5, 0.99))
    work, most = (statistics.median(max(o) / statistics.mean(o) for o in of) for of in _sides(outcomes))
    bound = case.get("load_bound", "")
    print(
        f"| {case['policy']} | {bound} | {hits:.1%} | {p50_s * 1e3:.0f} | {p99_s * 1e3:.0f} | {work:.2f} | {most:.2f} |"
    )
    return hits, p99_s, work


def _sides(outcomes: list[Outcome]) -> tuple[list[list[int]], list[list[int]]]:
    return [o.work for o in outcomes], [o.most for o in outcomes]


if __name__ == "__main__":
    sys.exit(main())
