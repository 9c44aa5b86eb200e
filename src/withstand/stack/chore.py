"""A short-lived program that fills a folder: run, watched by the folder's size, killed when we are interrupted."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from withstand import clock
from withstand.stack.progress import Progress

_LOOK_S = 0.1


class Chore(msgspec.Struct, frozen=True, kw_only=True):
    """What is run. ``size`` is what the folder grows by; ``env`` is laid over our own environment."""

    step: str
    argv: Sequence[str]
    env: Mapping[str, str] = {}
    folder: Path
    size: int


class Done(msgspec.Struct, frozen=True):
    """How it ended, and all that it said."""

    exit_code: int
    said: str


def carry_out(chore: Chore, progress: Progress) -> Done:
    """Run to the end."""
    before = _size(chore.folder)
    progress(chore.step, 0, chore.size)
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603 - argv is built by us, without a shell
            chore.argv,
            env={**os.environ, **chore.env},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            while process.poll() is None:
                progress(chore.step, min(_size(chore.folder) - before, chore.size - 1), chore.size)
                clock.sleep_s(_LOOK_S)
        finally:
            process.kill()
            process.wait()
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    if process.returncode == 0:
        progress(chore.step, chore.size, chore.size)
    return Done(exit_code=process.returncode, said=text)


def _size(folder: Path) -> int:
    """Bytes of all files below; one that vanishes while we look counts as nothing."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(parent) / name).lstat().st_size
            except OSError:
                continue
    return total
