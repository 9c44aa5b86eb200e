"""The folder of one run on disk.

``run.json`` · ``records.w<worker>.jsonl``, ``text-counts.jsonl`` and ``samples.jsonl`` while it is open,
``records.jsonl.gz`` and ``samples.jsonl.gz`` once it is closed · ``summary.json`` · ``report.html``. Every finished
record is readable after a ``kill -9`` at any instant.
"""

import shutil
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path

import msgspec

from withstand import clock
from withstand.errors import StorageError, UsageError
from withstand.files import ensure_empty, is_there, storage_error, write_atomically
from withstand.hints import url_in
from withstand.record import Record, Sample, decode_record, encode_record
from withstand.runs.counts import append_counts, read_counts, with_text_tokens
from withstand.runs.lines import WHOLE, DamagedError, Share, lines_of, pack
from withstand.runs.manifest import SCHEMA, Manifest
from withstand.runs.samples import OPEN, close_samples, told_samples

_MANIFEST = "run.json"
_CLOSED = "records.jsonl.gz"
_CLOSED_AS = (_CLOSED, "records.jsonl.zst", "records.jsonl")
_PARTS = "records.w*.jsonl"
_COUNTS = "text-counts.jsonl"
_PACKED = 3
"""What packing saves of records, at least."""


class RunFolder:
    """One run."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self.damaged_samples = 0
        """The same of samples, found by the last ``samples()``."""
        self.damaged_lines = 0
        """Lines in the middle of a file that are no records, found by the last ``records``."""

    @classmethod
    def create(cls, path: Path | None, manifest: Manifest) -> "RunFolder":
        """A new folder; by default ``runs/<date-time>``.

        Raises:
            UsageError: there is a run already, or something else.
            StorageError: it cannot be made.
        """
        folder = cls(new_folder(path, _MANIFEST), manifest)
        folder.update(manifest)
        return folder

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether a folder holds a run, whole or damaged; other tools have a file of this name too."""
        manifest = path / _MANIFEST
        return is_there(manifest) and manifest.is_file() and not _is_anothers(manifest)

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """An existing run.

        Raises:
            UsageError: the folder is none.
            StorageError: its manifest is damaged, or of a later version.
        """
        try:
            data = (path / _MANIFEST).read_bytes()
        except OSError:
            if (url := url_in(path)) and not is_there(path):
                raise UsageError(
                    f"{url} is a URL, and no folder: measure it by `withstand run --base-url {url}`."
                ) from None
            what = f"it has no {_MANIFEST}" if is_there(path) else "there is nothing of this name"
            raise UsageError(f"{path} is no run folder: {what}.") from None
        return cls(path, manifest_of(path, data))

    def update(self, manifest: Manifest) -> None:
        """Replace the manifest on disk."""
        self.manifest = manifest
        write_atomically(self.path / _MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))

    def worker_file(self, worker: int) -> Path:
        """Where a worker appends its records."""
        return self.path / f"records.w{worker}.jsonl"

    def worker_files(self) -> list[Path]:
        """Those that there are."""
        return sorted(self.path.glob(_PARTS))

    def add_text_counts(self, stage: int, counts: Iterable[tuple[int, int]]) -> None:
        """(id, tokens) of answers whose texts have been counted: from now on their records have them.

        Raises:
            StorageError: it cannot be written.
        """
        append_counts(self.path / _COUNTS, stage, counts)

    def records(self, stage: int | None = None, share: Share = WHOLE) -> Iterator[Record]:
        """The facts of one stage, or of all, in no particular order; of several readers each takes its share.

        Shares are of a folder that is ``divisible``.
        """
        self.damaged_lines = 0
        seen: set[tuple[int, int]] | None = None if self.divisible else set()
        counts = read_counts(self.path / _COUNTS, stage)
        for path in self._files():
            for record in self._records_of(path, share):
                if (stage is None or record.stage == stage) and _is_new(record, seen):
                    yield with_text_tokens(record, counts.get((record.stage, record.id)))

    @property
    def samples_file(self) -> Path:
        """Where samples of the server's side are appended."""
        return self.path / OPEN

    def samples(self) -> list[Sample]:
        """What was seen of the server's side, in the order of time."""
        found, self.damaged_samples = told_samples(self.path)
        return found

    @property
    def divisible(self) -> bool:
        """No record stands in two files: so it is unless a crash came while they were gathered."""
        return not (any(self._closed()) and bool(self.worker_files()))

    def plain_bytes(self) -> int:
        """About how long all record files are when they are unpacked."""
        return sum(_size(path) * (1 if path.suffix == ".jsonl" else _PACKED) for path in self._files())

    def _closed(self) -> list[Path]:
        """As we leave it, or as somebody has packed it since."""
        return [path for name in _CLOSED_AS if (path := self.path / name).exists()][:1]

    def _files(self) -> list[Path]:
        return self._closed() + self.worker_files()

    def _records_of(self, path: Path, share: Share) -> Iterator[Record]:
        """Every whole line; the last one may have been cut by a crash."""
        try:
            for line in lines_of(path, share):
                try:
                    yield decode_record(line)
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    self.damaged_lines += line.endswith(b"\n")
        except DamagedError:
            self.damaged_lines += share.index == 0  # all readers come upon it

    def close(self) -> None:
        """Gather the workers' files into one compressed file, and the samples into another.

        Raises:
            StorageError: it cannot be written; the workers' files stay.
        """
        close_samples(self.path)
        parts = self.worker_files()
        if not parts:
            return
        lines = (encode_record(record) + b"\n" for record in self.records())
        pack(lines, self.path / _CLOSED, instead_of=(*parts, self.path / _COUNTS))


def new_folder(path: Path | None, manifest: str) -> Path:
    """An empty folder for something that will have a manifest of this name; by default ``runs/<date-time>``.

    Raises:
        UsageError: there is one already, or something else.
        StorageError: it cannot be made.
    """
    if path is None:
        return _made_by_default()
    if is_there(path / manifest):
        raise UsageError(f"{path} holds a run already; go on with it by --resume {path}, or choose another folder.")
    ensure_empty(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise storage_error(path, e) from None
    return path


def _size(path: Path) -> int:
    """In bytes; nothing of a file that has just been gathered into another."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _is_new(record: Record, seen: set[tuple[int, int]] | None) -> bool:
    """Whether it has not come yet; without a set to remember by, nothing can come twice."""
    if seen is None:
        return True
    before = len(seen)
    seen.add((record.stage, record.id))
    return len(seen) > before


def _made_by_default() -> Path:
    """``runs/20261128-030405``, with a number behind it where that is taken: another run may begin at this instant."""
    base = Path("runs") / clock.local_stamp()
    for i in count(1):
        path = base if i == 1 else base.with_name(f"{base.name}-{i}")
        try:
            path.mkdir(parents=True)
        except FileExistsError as e:
            if not base.parent.is_dir():
                raise storage_error(path, e) from None
        except OSError as e:
            raise storage_error(path, e) from None
        else:
            break
    return path


def manifest_of(path: Path, data: bytes) -> Manifest:
    """What ``run.json`` of the folder ``path`` says.

    Raises:
        UsageError: it is another tool's.
        StorageError: it is damaged, or of a later version.
    """
    try:
        schema = _schema(data)
        if schema is None:
            raise UsageError(f"{path} is no run folder: its {_MANIFEST} is of another tool.")
        if schema > SCHEMA:
            raise StorageError(f"{path} was written by a later withstand (schema {schema}); update this one.")
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        raise StorageError(f"{path / _MANIFEST} is damaged: {e}. Take {path} away, or name the others alone.") from None


def _is_anothers(manifest: Path) -> bool:
    """Ours tells its schema; what cannot be read at all may have been one of ours."""
    try:
        return _schema(manifest.read_bytes()) is None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OSError):
        return False


class _Schemed(msgspec.Struct, frozen=True):
    """Every manifest of ours tells its number."""

    schema: int | None = None


def _schema(data: bytes) -> int | None:
    """None = it is none of ours.

    Raises:
        MsgspecError: it is no JSON.
    """
    try:
        return msgspec.json.decode(data, type=_Schemed).schema
    except msgspec.ValidationError:
        msgspec.json.decode(data)  # what is no JSON at all may have been ours
        return None


def free_bytes(path: Path) -> int:
    """Space left on the disk that holds ``path`` or will."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free
