"""The last calibration of this machine, in the user's cache folder; that of another machine or version is none."""

from pathlib import Path

import msgspec

from withstand.app.machine import client_facts
from withstand.errors import EngineError, StorageError
from withstand.files import write_atomically
from withstand.metrics.calibration import Calibration
from withstand.stack.cache import cache_folder

_NAME = "calibration.json"
_PASSING = frozenset({"open files"})
"""Facts that differ from shell to shell, and do not make another machine."""


def keep(calibration: Calibration) -> Path | None:
    """Store it; where that cannot be done, it is none the less true: None."""
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / _NAME, msgspec.json.format(msgspec.json.encode(calibration), indent=1))
    except (EngineError, StorageError, OSError):
        return None
    return folder / _NAME


def kept() -> Calibration | None:
    """The one of this machine and version; None = there is none."""
    try:
        data = (cache_folder() / _NAME).read_bytes()
        calibration = msgspec.json.decode(data, type=Calibration)
    except (EngineError, OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return calibration if _lasting(calibration.machine) == _lasting(client_facts()) else None


def _lasting(machine: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in machine.items() if name not in _PASSING}
