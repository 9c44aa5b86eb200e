"""How often does `withstand ab` tell a server from itself, or from one that is slower by 5 %? Wants a quiet machine.

    python benchmarks/compare/interleaved.py [--repeats 5] [--blocks 8] [--rate 50] [--requests 200]

Each repeat is a whole measurement, interleaved: a truth server against itself, then against one that is 5 % slower
throughout. "Told apart" counts measurements in which any metric is called better or worse.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from withstand.testing.truth.process import TruthServer
from withstand.testing.truth.schedule import Schedule

_SLOWER = 1.05
_TTFT_MS, _ITL_MS, _TOKENS = 40.0, 4.0, 16


def schedule(factor: float) -> Schedule:
    """Of a server that takes so much longer than the first."""
    return Schedule(ttft_ms=_TTFT_MS * factor, itl_ms=_ITL_MS * factor, tokens=_TOKENS)


def measured(a: str, b: str, folder: Path, asked: argparse.Namespace) -> str:
    """What `withstand ab` prints."""
    load = ["--request-rate", str(asked.rate), "--num-prompts", str(asked.requests), "--output-len", str(_TOKENS)]
    command = [sys.executable, "-m", "withstand", "ab", f"a={a}", f"b={b}", "--model", "truth", "--input-len", "16"]
    more = ["--blocks", str(asked.blocks), "--output-dir", str(folder), "--quiet"]
    return subprocess.run([*command, *load, *more], stdout=subprocess.PIPE, text=True, check=False).stdout


def verdicts(folder: Path) -> list[str]:
    """One a metric."""
    groups = json.loads((folder / "comparison.json").read_text("utf-8"))["groups"]
    return [row["differences"][1]["verdict"] for group in groups for row in group["rows"]]


def main() -> None:
    """Measure, and print how often the sides were told apart."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--requests", type=int, default=200)
    asked = parser.parse_args()
    apart = {"A/A": 0, "A/B": 0}
    sample = ""
    with (
        tempfile.TemporaryDirectory() as temporary,
        TruthServer(schedule(1)) as one,
        TruthServer(schedule(_SLOWER)) as other,
    ):
        for repeat in range(1, asked.repeats + 1):
            for name, second in (("A/A", one), ("A/B", other)):
                folder = Path(temporary) / f"{name.replace('/', '')}-{repeat}"
                sample = measured(one.base_url, second.base_url, folder, asked)
                found = verdicts(folder)
                apart[name] += any(verdict in {"better", "worse"} for verdict in found)
                print(
                    f"{name} {repeat}: {', '.join(f'{found.count(v)} {v}' for v in dict.fromkeys(found))}", flush=True
                )
    for name, times in apart.items():
        print(f"{name}: told apart in {times} of {asked.repeats}")
    print(f"\nThe last A/B:\n{sample}")


if __name__ == "__main__":
    main()
