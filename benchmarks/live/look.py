"""How long a look at a run takes that has a million records already: python benchmarks/live/look.py [RECORDS].

Four workers' files, answers of 20 tokens. A look opens the folder in the middle of its stage, then more of them follow
while records are appended.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from withstand import clock
from withstand.app.follow import Follower
from withstand.record import encode_record
from withstand.runs import Manifest, RunFolder, RunState, StageEntry, this_process
from withstand.spec import Plan, Poisson, Stage
from withstand.testing.records import make_record

WORKERS, LOOKS_AFTER, APPENDED = 4, 40, 1_000


def folder_of(path: Path, records: int) -> RunFolder:
    stage = Stage(name="rate-1000", arrivals=Poisson(1000.0), num_prompts=2 * records)
    entry = StageEntry(name=stage.name, stage=stage, state=RunState.RUNNING)
    manifest = Manifest(
        version="0", created_utc="", anchor=clock.anchor(), plan=Plan(), writer=this_process(), stages=(entry,)
    )
    folder = RunFolder.create(path, manifest)
    for worker in range(WORKERS):
        append(folder, worker, records // WORKERS)
    return folder


def append(folder: RunFolder, worker: int, records: int) -> None:
    """The same thousand again and again: they differ in nothing that costs."""
    lines = b"".join(encode_record(make_record(i)) + b"\n" for i in range(1_000))
    with folder.worker_file(worker).open("ab") as file:
        file.writelines(lines for _ in range(records // 1_000))


def look(follower: Follower) -> tuple[float, int]:
    """CPU time: the machine may be busy with something else."""
    began = time.thread_time()
    snapshot = follower.look()
    took_ms = (time.thread_time() - began) * 1e3
    assert snapshot.current
    return took_ms, snapshot.current.done


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as room:
        folder = folder_of(Path(room) / "r", records)
        size = sum(path.stat().st_size for path in folder.worker_files())
        print(f"{records:,} records, {size / 1e6:,.0f} MB")
        follower, took_ms, done = Follower(folder.path), [], 0
        while done < records:
            ms, done = look(follower)
            took_ms.append(ms)
        print(
            f"first look {took_ms[0]:.1f} ms of CPU, the longest {max(took_ms):.1f}; all counted after {len(took_ms)}"
        )
        after_ms = []
        for _ in range(LOOKS_AFTER):
            append(folder, 0, APPENDED)
            after_ms.append(look(follower)[0])
        print(f"{APPENDED:,} more each: median {statistics.median(after_ms):.1f} ms, longest {max(after_ms):.1f} ms")


if __name__ == "__main__":
    main()
