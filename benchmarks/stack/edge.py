"""What nginx and our gateway add to streams, and how soon the engine knows that a client at the edge has left.

    python -m benchmarks.stack.edge [--streams N] [--seconds S] [--rounds N]

A truth server is the engine: its log says when it had each request, wrote each token, and saw its client leave. It is
asked directly and through the edge, turn and turn about. What is added is the difference of percentiles, of a request's
way there, of a token's way back, and of TTFT, which is both; medians over the rounds. Everything shares the machine's
cores: let nothing else run. Exit status 1 if something does not hold.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.stack.streams import Heard, streams

from withstand.spec.stack import stack_of
from withstand.stack.local import bring_up
from withstand.stack.taking_down import take_down
from withstand.testing import Schedule, TruthServer
from withstand.testing.truth import Served

_TTFT_MS, _ITL_MS, _TOKENS = 50.0, 20.0, 100
_ADDED_P99_MS = 1.5
_LEAVES_MS = 100.0
_LEAVE_AT = 5
_PATIENCE_S = 10.0
_NS_PER_MS = 1e6
Row = Mapping[str, float]


def main() -> int:
    """Both tables."""
    asked = _arguments()
    with tempfile.TemporaryDirectory() as state, TruthServer(Schedule(ttft_ms=_TTFT_MS, itl_ms=_ITL_MS)) as engine:
        os.environ["WITHSTAND_STATE"] = state
        remote = {"kind": "remote", "url": engine.base_url, "served_as": "truth"}
        tree = {"name": "edge", "engines": {"truth": remote}, "gateway": {}, "edge": {"workers": 1}}
        standing = bring_up(stack_of(tree, "edge"), lambda *_: None, lambda _: None)
        try:
            doors = {"direct": engine.base_url, "edge": standing.blueprint.door}
            good = _added(engine, doors, asked)
            return 0 if _left(engine, doors, asked.streams) and good else 1
        finally:
            take_down(standing)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each round, each way")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def _added(engine: TruthServer, doors: Mapping[str, str], asked: argparse.Namespace) -> bool:
    rows: dict[str, list[Row]] = {way: [] for way in doors}
    for _ in range(asked.rounds):
        for way, url in doors.items():
            engine.reset()
            heard = list(streams(url, asked.streams, tokens=_TOKENS, seconds=asked.seconds, name=way))
            rows[way].append(_row(heard, engine.truth()))
    direct, edge = ({name: statistics.median(row[name] for row in rows[way]) for name in rows[way][0]} for way in doors)
    print(f"{asked.streams} streams, {1000 / _ITL_MS:.0f} tokens a second each; medians of {asked.rounds} rounds, ms")
    print(f"{'':<24} {'direct':>9} {'edge':>9} {'added':>9}")
    for name in direct:
        print(f"{name:<24} {direct[name]:>9.3f} {edge[name]:>9.3f} {edge[name] - direct[name]:>9.3f}")
    judged = [name for name in direct if name.endswith("p99")]
    bad = [name for name in judged if edge[name] - direct[name] > _ADDED_P99_MS]
    print(f"must hold: added p99 <= {_ADDED_P99_MS} ms: {'no: ' + ', '.join(bad) if bad else 'yes'}\n")
    return not bad


def _row(heard: Iterable[Heard], truth: Iterable[Served]) -> Row:
    served = {entry.request_id: entry for entry in truth}
    there, back, ttft = list[float](), list[float](), list[float]()
    for each in heard:
        entry = served[each.request_id]
        assert len(each.events_ns) == entry.tokens, f"{each.request_id}: {len(each.events_ns)} of {entry.tokens} tokens"
        there.append((entry.here_ns - each.sent_ns) / _NS_PER_MS)
        back += [(here - out) / _NS_PER_MS for here, out in zip(each.events_ns, entry.token_ns, strict=True)]
        ttft.append((each.events_ns[0] - each.sent_ns) / _NS_PER_MS)
    ways = {"request there": there, "token back": back, "TTFT": ttft}
    return {f"{name} p{at}": _percentile(values, at) for name, values in ways.items() for at in (50, 99)}


def _percentile(values: Sequence[float], at: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * at // 100)]


def _seen_to_leave(engine: TruthServer, count: int) -> dict[str | None, Served]:
    """The log, once all have been seen to leave, or nobody waits any longer."""
    give_up_s = time.monotonic() + _PATIENCE_S
    while True:
        served = {entry.request_id: entry for entry in engine.truth()}
        gone = sum(entry.aborted_ns is not None for entry in served.values())
        if gone >= count or time.monotonic() > give_up_s:
            return served
        time.sleep(0.05)


def _left(engine: TruthServer, doors: Mapping[str, str], count: int) -> bool:
    print(f"{count} clients leave after {_LEAVE_AT} tokens: until the engine has seen it, ms")
    worst = 0.0
    for way, url in doors.items():
        engine.reset()
        heard = list(streams(url, count, tokens=10_000, seconds=0, leave_at=_LEAVE_AT, name=f"{way}-leaves"))
        served = _seen_to_leave(engine, count)
        known = [(served[h.request_id].aborted_ns, h.left_ns) for h in heard]
        took = [(seen - left) / _NS_PER_MS for seen, left in known if seen is not None and left is not None]
        worst = max(took) if len(took) == count else float("inf")
        print(
            f"{way:<24} p50 {_percentile(took, 50):.3f}, p99 {_percentile(took, 99):.3f}, max {worst:.3f}; {len(took)}"
        )
    print(f"must hold: < {_LEAVES_MS:.0f} ms: {'yes' if worst < _LEAVES_MS else 'no'}")
    return worst < _LEAVES_MS


if __name__ == "__main__":
    sys.exit(main())
