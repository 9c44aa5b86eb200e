"""CPU time of ``withstand --help``, whole process: python benchmarks/cli/help_cost.py. The limit is 150 ms."""

import resource
import statistics
import subprocess
import sys

RUNS = 20


def cpu_ms(*argv: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *argv], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return spent_s * 1e3


def main() -> None:
    for name, argv in {
        "python, nothing": ("-c", "pass"),
        "withstand --help": ("-m", "withstand", "--help"),
        "withstand run --help": ("-m", "withstand", "run", "--help"),
    }.items():
        costs_ms = [cpu_ms(*argv) for _ in range(RUNS)]
        print(f"{name:<22} median {statistics.median(costs_ms):6.0f} ms CPU, max {max(costs_ms):6.0f} ms")


if __name__ == "__main__":
    main()
