"""The small model as a Hugging Face folder: made of its GGUF file once, kept in the cache, checked at each use."""

import hashlib
import shutil
import sys
from pathlib import Path

import msgspec

from withstand.errors import EngineError
from withstand.stack.cache import cache_folder, workplace
from withstand.stack.chore import Chore, carry_out
from withstand.stack.machine import require_disk
from withstand.stack.model import ModelFile, last_line
from withstand.stack.progress import Progress

LAYOUT = 1
"""Raise it when ``hf`` makes another folder of the same source."""

_STAMP = "withstand.json"
_EXTRA_BYTES = 8_000_000
"""The tokenizer, besides the weights."""


class _Stamp(msgspec.Struct, frozen=True):
    """What it was made of, and what came out: file → SHA-256."""

    source_sha256: str
    layout: int
    files: dict[str, str]


def hf_folder(model: ModelFile, progress: Progress) -> Path:
    """The folder; its last part is the model's name.

    Raises:
        EngineError: no disk, or the file is of a kind that cannot be laid out so.
    """
    folder = place_of(model.name)
    if not _is_whole(folder, model):
        with workplace(folder.parent, progress) as work:
            if not _is_whole(folder, model):  # another process has made it while we waited
                _make(model, folder, work, progress)
    return folder


def place_of(name: str) -> Path:
    """Where it is, or will be."""
    return cache_folder() / "models" / "hf" / name


def is_laid_out(model: ModelFile) -> bool:
    """Whether it is there, and whole."""
    return _is_whole(place_of(model.name), model)


def _is_whole(folder: Path, model: ModelFile) -> bool:
    try:
        stamp = msgspec.json.decode((folder / _STAMP).read_bytes(), type=_Stamp)
        return stamp == _Stamp(model.sha256, LAYOUT, _sums(folder))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):  # not there, or not readable: it will be made again
        return False


def _make(model: ModelFile, folder: Path, work: Path, progress: Progress) -> None:
    size = model.path.stat().st_size + _EXTRA_BYTES
    require_disk(work, size, "make room, or name another folder by WITHSTAND_CACHE")
    made = work / "folder"
    made.mkdir()
    chore = Chore(
        step="Laying it out for Hugging Face",
        argv=[sys.executable, "-P", "-m", "withstand.stack.hf", str(model.path), str(made)],
        folder=work,
        size=size,
    )
    done = carry_out(chore, progress)
    if done.exit_code != 0:
        raise EngineError(f"{model.path} cannot be made a folder for this engine: {last_line(done.said)}")
    (made / _STAMP).write_bytes(msgspec.json.encode(_Stamp(model.sha256, LAYOUT, _sums(made))))
    shutil.rmtree(folder, ignore_errors=True)
    made.replace(folder)


def _sums(folder: Path) -> dict[str, str]:
    return {path.name: _sha256(path) for path in sorted(folder.iterdir()) if path.name != _STAMP}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
