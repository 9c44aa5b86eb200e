"""What must hold of the client, found out on this machine: each cell prints what is wanted and what came.

    python -m benchmarks.load.must_hold [CELL …] [--rounds N] [--seconds S] [--wall S]

The client is kept on one core and the truth server on another; README.md beside this file tells what they are.
"""

import argparse
import itertools
import os
import signal
import sys
import tempfile
from pathlib import Path

from benchmarks.load.cells import CELLS, MUST_HOLD, Bench
from benchmarks.load.claims import Cell, all_hold, as_table
from benchmarks.load.instrument import AbsentError, Cores, kept_awake


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are ended, too
    asked = _arguments()
    with kept_awake(Cores.of_this_machine(), wanted=asked.awake):
        held = [_cell(name, asked) for name in asked.cells or MUST_HOLD]
    return 0 if all(held) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cells", nargs="*", metavar="CELL", help=f"any of: {', '.join(CELLS)}; else the must-hold list")
    parser.add_argument("--rounds", type=int, default=1, help="how often each cell is run; medians are judged")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long requests arrive in a cell")
    parser.add_argument("--wall", type=float, default=3600.0, help="how long the cell `wall` takes, in seconds")
    parser.add_argument("--awake", action="store_true", help="no core ever sleeps, as on a machine of one's own")
    asked = parser.parse_args()
    if unknown := set(asked.cells) - set(CELLS):
        parser.error(f"no such cell: {', '.join(sorted(unknown))}")
    return asked


def _cell(name: str, asked: argparse.Namespace) -> bool:
    """Run and print it; whether it holds. Without its instruments it does not."""
    try:
        found = _rounds_of(name, asked)
    except AbsentError as e:
        print(f"### {name}: not measured\n\n{e}\n", flush=True)
        return False
    print(as_table(name, found), flush=True)
    return all_hold(found)


def _rounds_of(name: str, asked: argparse.Namespace) -> list[Cell]:
    cores = Cores.of_this_machine()
    usable = os.sched_getaffinity(0)
    os.sched_setaffinity(0, usable - {cores.client})  # this process must not disturb the client
    rounds = 1 if name == "reference" else asked.rounds  # it has rounds of its own
    found: list[Cell] = []
    try:
        for _ in range(rounds):
            with tempfile.TemporaryDirectory(prefix="must-hold-") as folder:
                numbers = itertools.count()
                bench = Bench(cores, Path(folder), asked.seconds, asked.rounds, asked.wall, numbers)
                found.append(CELLS[name](bench))
    finally:
        os.sched_setaffinity(0, usable)
    return found


if __name__ == "__main__":
    sys.exit(main())
