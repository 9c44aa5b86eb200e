"""From the command to the first request at the server, for 1,000 ShareGPT-like prompts: seconds of wall time.

    python benchmarks/cli/startup.py [FILE] [RUNS]

Without FILE, 1,200 conversations of some 150 tokens are made up. The first request is the warm-up; behind it the time
to the first measured one is printed too.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from withstand.testing import Schedule, TruthServer

TEXT = "the model serves many users and each of them waits for the first token of an answer"
WORDS = TEXT.split()


def made_up(folder: Path) -> Path:
    rng = random.Random(1)

    def text() -> str:
        return " ".join(rng.choices(WORDS, k=rng.randint(20, 280)))

    rows = [
        {"conversations": [{"from": "human", "value": text()}, {"from": "gpt", "value": text()}]} for _ in range(1200)
    ]
    path = folder / "sharegpt.json"
    path.write_text(json.dumps(rows))
    return path


class AbsentError(Exception):
    """The requests never came: why, in withstand's words."""


def first_requests_s(path: Path, tokenizer: str, folder: Path) -> tuple[float, float]:
    """To the warm-up, and to the first measured one.

    Raises:
        AbsentError: a tokenizer that is not installed, a file that is not there.
    """
    with TruthServer(Schedule(ttft_ms=1, itl_ms=0, tokens=1)) as server:
        command = [
            sys.executable,
            "-m",
            "withstand",
            "run",
            "--base-url",
            server.base_url,
            "--dataset-name",
            "sharegpt",
        ]
        command += ["--dataset-path", str(path), "--num-prompts", "1000", "--set", "workload.repeat=true"]
        command += ["--max-concurrency", "50", "--tokenizer", tokenizer, "--quiet", "--output-dir", str(folder)]
        began_ns = time.monotonic_ns()
        done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        arrivals = [s.arrival_ns for s in server.truth() if s.path.endswith("completions")]
    if len(arrivals) < 2:
        raise AbsentError(done.stderr.strip())
    return (arrivals[0] - began_ns) / 1e9, (arrivals[1] - began_ns) / 1e9


def main() -> None:
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else made_up(folder)
        for tokenizer in ("tiktoken", "engine", "estimate"):
            try:
                found = [first_requests_s(path, tokenizer, folder / f"{tokenizer}{i}") for i in range(runs)]
            except AbsentError as e:
                print(f"{tokenizer:9} not measured: {e}")
                continue
            warm, measured = (statistics.median(column) for column in zip(*found, strict=True))
            print(f"{tokenizer:9} first request after {warm:.2f} s, first measured one after {measured:.2f} s")


if __name__ == "__main__":
    main()
