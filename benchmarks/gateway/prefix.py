"""Does ``prefix`` find more of its prompts in engines' caches than others, and at what price in balance?

    python -m benchmarks.gateway.prefix [--engines 4] [--users 60] [--conversations 600] [--rounds 3]

Virtual time: the gateway's own policies, and engines as ``simulated`` has them. Exit status 1 if ``prefix`` does not
have more hits than ``round_robin``, or a later p99 of TTFT.
"""

import argparse
import statistics
import sys

from benchmarks.gateway.simulated import Outcome, simulate

CASES: list[tuple[str, dict[str, object]]] = [
    ("round_robin", {}),
    ("random", {}),
    ("least_inflight", {}),
    ("session", {"load_bound": 1.25}),
    ("session", {"load_bound": 1.5}),
    ("prefix", {"load_bound": 1.1}),
    ("prefix", {"load_bound": 1.25}),
    ("prefix", {"load_bound": 1.5}),
    ("prefix", {"load_bound": 2.0}),
    ("prefix", {"load_bound": 100.0}),
]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", type=int, default=4)
    parser.add_argument("--users", type=int, default=60)
    parser.add_argument("--conversations", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    print("| policy | bound | hits | TTFT p50 ms | p99 ms | most work of one engine / mean | most at once / mean |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    found: dict[tuple[str, object], tuple[float, float]] = {}
    for policy, model in CASES:
        outcomes = [
            simulate(policy, told.engines, told.users, told.conversations, seed, **model) for seed in range(told.rounds)
        ]
        bound = model.get("load_bound", "")
        found[policy, bound] = _row(policy, bound, outcomes, told.engines)
    ours, theirs = found["prefix", 1.5], found["round_robin", ""]
    return int(ours[0] <= theirs[0] or ours[1] > theirs[1])


def _row(policy: str, bound: object, outcomes: list[Outcome], engines: int) -> tuple[float, float]:
    """(Share of hits, p99 of TTFT in s), medians of the rounds."""
    hits = statistics.median(o.hit_share for o in outcomes)
    p50_s, p99_s = (statistics.median(sorted(o.ttft_s)[int(len(o.ttft_s) * q)] for o in outcomes) for q in (0.5, 0.99))
    work = statistics.median(max(o.shares) * engines for o in outcomes)
    most = statistics.median(max(o.most) * engines / sum(o.most) for o in outcomes)
    print(f"| {policy} | {bound} | {hits:.1%} | {p50_s * 1e3:.0f} | {p99_s * 1e3:.0f} | {work:.2f} | {most:.2f} |")
    return hits, p99_s


if __name__ == "__main__":
    sys.exit(main())
