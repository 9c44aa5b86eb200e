"""A diagnosis in a run's folder: ``doctor.json``."""

from pathlib import Path

import msgspec

from withstand.doctor.finding import Diagnosis
from withstand.files import write_atomically

_NAME = "doctor.json"


def encoded(diagnosis: Diagnosis) -> bytes:
    """As JSON for people and programs."""
    return msgspec.json.format(msgspec.json.encode(diagnosis), indent=2) + b"\n"


def keep(folder: Path, diagnosis: Diagnosis) -> None:
    """Put it there.

    Raises:
        StorageError: it cannot be written.
    """
    write_atomically(folder / _NAME, encoded(diagnosis))


def kept(folder: Path) -> Diagnosis | None:
    """What is there; None = nothing, or nothing that can be read."""
    try:
        return msgspec.json.decode((folder / _NAME).read_bytes(), type=Diagnosis)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
