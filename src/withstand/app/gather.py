"""Folds a run's records, by one reading for all of its stages. A large run is read by several processes.

Each takes its share of the lines, puts what is long on a shelf, and leaves its folds as a file; merged, they are those
of the whole. What is small is folded here: to start a process would take longer.
"""

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from withstand.errors import StorageError
from withstand.metrics.fold import NOTHING, Besides, StageFold
from withstand.metrics.sample import Keep
from withstand.runs import WHOLE, RunFolder, Share, allowed_cores
from withstand.spec import Slo

_LARGE_BYTES = 50_000_000
_READERS_MAX = 4
"""Each has its memory, and unpacks the whole: more would not be faster."""

Folds = dict[int, StageFold]


class Wanted(msgspec.Struct, frozen=True):
    """Which stages are to be folded, and how much of them is kept."""

    stages: tuple[int, ...]
    goodput: Slo
    besides: Besides

    def folds(self, keep: Keep | None = None) -> Folds:
        """Empty ones."""
        return {stage: StageFold(self.goodput, keep, self.besides) for stage in self.stages}


class Part(msgspec.Struct, frozen=True):
    """What one reader is to do: ``withstand.app.gather_part`` gets it as JSON."""

    folder: str
    wanted: Wanted
    share: Share
    room: str

    @property
    def result(self) -> Path:
        """Where it leaves a pickled ``Gathered``."""
        return Path(self.room) / f"part-{self.share.index}.pickle"


class Gathered(msgspec.Struct):
    """What a reader has found."""

    folds: Folds
    damaged_lines: int = 0


def fold_stages(folder: RunFolder, folds: Folds, share: Share = WHOLE) -> Gathered:
    """By this process alone."""
    found = Gathered(folds)
    only = next(iter(folds)) if len(folds) == 1 else None
    for record in folder.records(only, share):
        fold = folds.get(record.stage)
        if fold is not None:
            fold.add(record)
    found.damaged_lines = folder.damaged_lines
    return found


@contextmanager
def gathered(folder: RunFolder, stages: Collection[int], goodput: Slo, besides: Besides = NOTHING) -> Iterator[Folds]:
    """The folds of some stages, which may be read within the context.

    Raises:
        StorageError: the records cannot be read, or there is no room for what is too long for memory.
    """
    wanted = Wanted(tuple(stages), goodput, besides)
    if folder.plain_bytes() < _LARGE_BYTES:
        yield fold_stages(folder, wanted.folds()).folds
        return
    with tempfile.TemporaryDirectory(prefix="withstand-") as room:
        found = _by_several(folder, wanted, room)
        folder.damaged_lines = found.damaged_lines
        yield found.folds


def _by_several(folder: RunFolder, wanted: Wanted, room: str) -> Gathered:
    count = min(_READERS_MAX, allowed_cores()) if folder.divisible else 1
    parts = [Part(str(folder.path), wanted, Share(index, count), room) for index in range(count)]
    whole = Gathered(wanted.folds())
    with ExitStack() as stack:
        readers = [(part, stack.enter_context(_started(part))) for part in parts]
        for part, reader in readers:
            _merge(whole, _result(part, reader))
    return whole


def _merge(whole: Gathered, part: Gathered) -> None:
    whole.damaged_lines += part.damaged_lines
    for stage, fold in part.folds.items():
        whole.folds[stage].merge(fold)


@contextmanager
def _started(part: Part) -> Iterator["subprocess.Popen[bytes]"]:
    """A reader at work; none outlives the context."""
    reader = subprocess.Popen(
        [sys.executable, "-P", "-m", "withstand.app.gather_part"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    with reader:
        assert reader.stdin is not None
        try:
            with suppress(BrokenPipeError):  # it has died already: that will be said when its result is asked for
                reader.stdin.write(msgspec.json.encode(part))
                reader.stdin.close()
            yield reader
        finally:
            reader.kill()


def _result(part: Part, reader: "subprocess.Popen[bytes]") -> Gathered:
    assert reader.stderr is not None
    said = reader.stderr.read().decode("utf-8", "replace").strip()
    if reader.wait():
        why = said.rpartition("\n")[2] or f"it ended with {reader.returncode}"
        died = f"A process that read {part.folder} died ({why}): see that memory and disk suffice, and try again."
        raise StorageError(why if reader.returncode == FAILED else died)
    with part.result.open("rb") as file:
        found: Gathered = pickle.load(file)  # noqa: S301  our own reader's, in a folder that only we may enter
    part.result.unlink()
    return found


FAILED = 3
"""The exit code of a reader that has said why."""
