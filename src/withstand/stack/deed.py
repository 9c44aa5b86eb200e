"""Whose a stack's folder is: its supervisor's, as long as the blueprint lies there that this was started with.

Its input is that very file, so none that is written later is taken for it, and it reads no other.
"""

import os
import stat
import sys
from pathlib import Path

from withstand.stack.blueprint import Blueprint
from withstand.stack.state import blueprint_file, decoded


class Deed:
    """A supervisor's to a folder."""

    def __init__(self, folder: Path) -> None:
        self._file = blueprint_file(folder)
        self._given = os.fstat(sys.stdin.fileno())

    def blueprint(self) -> Blueprint | None:
        """What it was started with; None = with nothing of the kind."""
        return decoded(sys.stdin.buffer.read(), Blueprint) if stat.S_ISREG(self._given.st_mode) else None

    @property
    def holds(self) -> bool:
        """Whether the folder is its own still; one that cannot be looked into now is."""
        try:
            there = self._file.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return os.path.samestat(there, self._given)
