"""Runs that are cut: begun in a process, watched by what stands in their folder, and compared with whole ones."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from withstand.record import Record
from withstand.runs import RunFolder, RunState

RUN = (sys.executable, "-m", "withstand", "run")
TIMES = ("scheduled_ns", "ready_ns", "started_ns", "sent_ns", "first_byte_ns", "end_ns", "reused")


def withstand(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@contextlib.contextmanager
def begun(*arguments: str, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that is ended with the context, if it has not ended."""
    out, err = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen([*RUN, *arguments], cwd=cwd, stdout=out, stderr=err, text=True) as process:
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def stages_of(folder: Path) -> list[dict[str, Any]]:
    """As they stand in the folder; empty before there is one."""
    try:
        return list(json.loads((folder / "run.json").read_text())["stages"])
    except (FileNotFoundError, json.JSONDecodeError):
        return []


def state_of(folder: Path, index: int) -> str | None:
    return stages[index]["state"] if len(stages := stages_of(folder)) > index else None


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def facts(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """By stage: all that is in the records but times and what hangs on them; the schedule's own gaps are kept."""
    run = RunFolder.open(folder)
    shown = {i: e.name for i, e in enumerate(run.manifest.stages) if e.state is RunState.DONE}
    by_stage: dict[str, list[Record]] = {}
    for record in run.records():
        if record.stage in shown:
            by_stage.setdefault(shown[record.stage], []).append(record)
    return {name: _facts(sorted(records, key=lambda r: r.id)) for name, records in by_stage.items()}


def _facts(records: list[Record]) -> list[tuple[Any, ...]]:
    first_ns = records[0].scheduled_ns
    timeless = dict.fromkeys(TIMES)
    return [
        (
            None if first_ns is None else (record.scheduled_ns or 0) - first_ns,
            len(record.chunk_ns),
            msgspec.structs.replace(record, stage=0, retries=0, chunk_ns=[], unsure=[], unsure_since_ns=[], **timeless),
        )
        for record in records
    ]
