"""What it takes to read a large run: by default 1,000,000 requests of 100 events in four stages.

Run it with the repository's interpreter; how many requests, how they are packed and what is asked for may follow:

    .venv/bin/python -m benchmarks.metrics.big_folder 1000000 --packed gz --format json html --verb audit compare

Makes the folder in a temporary directory (seeded: lognormal gaps, failures, several workers), has it reported, audited
or compared with itself (both sides are read) by a process of its own, and prints how long that took, of how much of the
cores, and the peak of the memory that it and its children held together. ITL and TTFT in the JSON report (percentiles,
mean, spread of each stage) are held against numpy's over the same times.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from withstand import __version__, clock
from withstand.metrics.summary import PERCENTILES
from withstand.record import Clock, Record, Status, TokensFrom, encode_record
from withstand.runs import Manifest, RunFolder, RunState, StageEntry, this_process
from withstand.spec import Constant, Plan, Stage

STAGES = 4
RATE_RPS = 500
EVENTS = 100
BATCH = 1000
FAILING = 97
"""One in so many fails."""
LOOK_S = 0.05
ANSWERED = (0, 1)
"""Exit codes of a result, be it that nothing in it stands."""


def stage_records(stage: int, count: int) -> Iterator[tuple[Record, Any]]:
    """Records and their gaps, a batch of random numbers at a time."""
    rng = np.random.default_rng([7, stage])
    for start in range(0, count, BATCH):
        n = min(BATCH, count - start)
        first_ns = (rng.lognormal(-2.0, 0.5, n) * 1e9).astype(np.int64)
        gaps_ns = (rng.lognormal(-3.7 + 0.1 * stage, 0.4, (n, EVENTS - 1)) * 1e9).astype(np.int64)
        for i in range(n):
            sent_ns = (start + i) * 1_000_000_000 // RATE_RPS + 1_000
            yield record(stage, start + i, sent_ns, int(first_ns[i]), gaps_ns[i]), gaps_ns[i]


def record(stage: int, number: int, sent_ns: int, first_ns: int, gaps_ns: Any) -> Record:
    failed = number % FAILING == 0
    chunk_ns = (sent_ns + first_ns + np.concatenate([[0], np.cumsum(gaps_ns)])).tolist()
    return Record(
        id=number,
        stage=stage,
        worker=number % 2,
        status=Status.STREAM_ERROR if failed else Status.OK,
        scheduled_ns=sent_ns - 1_000,
        ready_ns=sent_ns - 900,
        started_ns=sent_ns - 500,
        sent_ns=sent_ns,
        first_byte_ns=chunk_ns[0],
        chunk_ns=chunk_ns,
        end_ns=chunk_ns[-1] + 10_000,
        prompt_tokens=512,
        output_tokens=None if failed else EVENTS,
        tokens_from=None if failed else TokensFrom.SERVER,
        requested_output_tokens=EVENTS,
        finish_reason=None if failed else "length",
        http_status=200,
        error="the stream broke off" if failed else None,
        clock=Clock.KERNEL,
        reused=True,
        text_head="Once upon a time there was a",
    )


def opened(path: Path, packed: str) -> IO[bytes]:
    if packed == "gz":
        return gzip.open(path, "wb", compresslevel=3)
    if packed == "zst":
        import zstandard  # noqa: PLC0415  an extra

        return zstandard.open(path, "wb")
    return path.open("wb")


def make(room: Path, requests: int, packed: str) -> tuple[Path, list[dict[str, float]]]:
    """A folder, and each stage's times by numpy."""
    each = requests // STAGES
    stage = Stage(arrivals=Constant(rate=RATE_RPS), num_prompts=each)
    entries = tuple(
        StageEntry(
            name=f"stage-{i}",
            stage=msgspec.structs.replace(stage, name=f"stage-{i}"),
            state=RunState.DONE,
            place=i,
            planned_requests=each,
        )
        for i in range(STAGES)
    )
    manifest = Manifest(
        version=__version__,
        created_utc="",
        anchor=clock.anchor(),
        plan=Plan(),
        writer=this_process(),
        state=RunState.DONE,
        stages=entries,
    )
    folder = RunFolder.create(room / "run", manifest)
    suffix = f".{packed}" if packed != "plain" else ""
    with opened(folder.path / f"records.jsonl{suffix}", packed) as file:
        exact = [write_stage(file, i, each) for i in range(STAGES)]
    return folder.path, exact


def write_stage(file: IO[bytes], stage: int, count: int) -> dict[str, float]:
    """The report's own names, their values by numpy in ms."""
    gaps, firsts = [], []
    for made, gaps_ns in stage_records(stage, count):
        file.write(encode_record(made) + b"\n")
        if made.status is Status.OK:
            gaps.append(gaps_ns)
            firsts.append(made.chunk_ns[0] - (made.sent_ns or 0))
    return exact_of("itl", np.concatenate(gaps)) | exact_of("ttft", np.array(firsts))


def exact_of(metric: str, values_ns: Any) -> dict[str, float]:
    percentiles = np.quantile(values_ns, [p / 100 for p in PERCENTILES])
    named = {f"p{p}_{metric}_ms": value for p, value in zip(PERCENTILES, percentiles, strict=True)}
    named |= {f"mean_{metric}_ms": np.mean(values_ns), f"std_{metric}_ms": np.std(values_ns)}
    return {name: float(value) / 1e6 for name, value in named.items()}


def tree_rss_bytes(pid: int) -> int:
    """Resident memory of a process and of all its descendants, by /proc."""
    total = 0
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    total += next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")), 0)
    return total + sum(tree_rss_bytes(int(child)) for child in children)


class Spent(msgspec.Struct, frozen=True):
    """What one call took."""

    wall_s: float
    cpu_s: float
    """Of all its processes."""
    peak_bytes: int


def spent(arguments: list[str], out: Path) -> Spent:
    began, before_s = time.perf_counter(), children_cpu_s()
    peak = 0
    with out.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", "withstand", *arguments], stdout=file)
        while process.poll() is None:
            peak = max(peak, tree_rss_bytes(process.pid))
            time.sleep(LOOK_S)
    if process.returncode not in ANSWERED:
        sys.exit(f"{arguments[0]} ended with {process.returncode}")
    return Spent(time.perf_counter() - began, children_cpu_s() - before_s, peak)


def children_cpu_s() -> float:
    """Of all children that have ended, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def calls(path: Path, forms: list[str], verbs: list[str]) -> dict[str, list[str]]:
    """What is called, by its name in the output."""
    reports = {f"report {form}": ["report", str(path), "--format", form] for form in forms}
    others = {"audit": ["audit", str(path)], "compare": ["compare", f"a={path}", f"b={path}"]}
    return reports | {verb: others[verb] for verb in verbs}


def worst_difference(path: Path, exact: list[dict[str, float]]) -> float:
    """The largest relative difference of any shown number from numpy's."""
    stages = json.loads(path.read_text())["stages"]
    pairs = [
        (shown[name], value) for shown, values in zip(stages, exact, strict=True) for name, value in values.items()
    ]
    return max(abs(shown - value) / value for shown, value in pairs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("requests", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--packed", choices=("plain", "gz", "zst"), default="plain")
    parser.add_argument("--format", nargs="*", default=["json"])
    parser.add_argument("--verb", nargs="*", choices=("audit", "compare"), default=[])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="big-folder-") as room:
        path, exact = make(Path(room), asked.requests, asked.packed)
        size_mb = sum(file.stat().st_size for file in path.iterdir()) / 1e6
        print(f"{asked.requests:,} requests, {asked.packed}: {size_mb:,.0f} MB")
        for name, arguments in calls(path, asked.format, asked.verb).items():
            out = Path(room) / name
            took = spent(arguments, out)
            held = f"{took.peak_bytes / 2**20:,.0f} MiB at the most"
            print(f"{name}: {took.wall_s:.1f} s ({took.cpu_s:.1f} s of CPU), {held}", flush=True)
            if name == "report json":
                print(f"ITL and TTFT are off numpy's by {worst_difference(out, exact):.1e} of the value at the most")


if __name__ == "__main__":
    main()
