"""The folder of a plan with several targets: ``targets.json``, and below it a run folder for each, under its name.

It tells what was asked. What became of it, each run folder tells itself.
"""

from pathlib import Path
from typing import Self

import msgspec

from withstand.errors import StorageError, UsageError
from withstand.files import is_there, write_atomically
from withstand.runs.environment import still_runs, this_process
from withstand.runs.folder import RunFolder, new_folder
from withstand.runs.manifest import Writer
from withstand.spec import Plan

_MANIFEST = "targets.json"
SCHEMA = 1


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """``targets.json``."""

    schema: int = SCHEMA
    version: str
    created_utc: str
    plan: Plan
    """With all its targets, without secrets."""
    argv: tuple[str, ...] = ()
    writer: Writer
    """Who goes from target to target."""


class TargetsFolder:
    """One of them."""

    def __init__(self, path: Path, asked: Asked) -> None:
        self.path = path
        self.asked = asked

    @classmethod
    def create(cls, path: Path | None, asked: Asked) -> Self:
        """A new one; by default ``runs/<date-time>``.

        Raises:
            UsageError: there is one already, or something else.
            StorageError: it cannot be made.
        """
        folder = cls(new_folder(path, _MANIFEST), asked)
        folder._write()
        return folder

    def take_over(self) -> None:
        """From now on this process writes it.

        Raises:
            UsageError: another one does.
        """
        if self.asked.writer != this_process() and still_runs(self.asked.writer):
            raise UsageError(f"{self.path} is being written by process {self.asked.writer.pid}; stop that first.")
        self.asked = msgspec.structs.replace(self.asked, writer=this_process())
        self._write()

    def _write(self) -> None:
        write_atomically(self.path / _MANIFEST, msgspec.json.format(msgspec.json.encode(self.asked), indent=1))

    @staticmethod
    def is_one(path: Path) -> bool:
        """Whether a folder is one, whole or damaged."""
        return is_there(path / _MANIFEST) and not RunFolder.is_one(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """An existing one.

        Raises:
            UsageError: the folder is none.
            StorageError: its file is damaged, or of a later version.
        """
        manifest = path / _MANIFEST
        try:
            asked = msgspec.json.decode(manifest.read_bytes(), type=Asked)
        except OSError as e:
            raise UsageError(f"{manifest} cannot be read: {e.strerror}.") from None
        except (msgspec.MsgspecError, RecursionError) as e:
            raise StorageError(f"{manifest} is damaged: {e}. Its run folders can be read one by one.") from None
        if asked.schema > SCHEMA:
            raise StorageError(f"{path} was written by a later withstand (schema {asked.schema}); update this one.")
        return cls(path, asked)

    def of(self, target: str) -> Path:
        """Where a target's run is, or will be."""
        return self.path / target

    def begun(self) -> dict[str, Path]:
        """The run folders that there are, by target, in the plan's order."""
        return {name: self.of(name) for name in self.asked.plan.targets if RunFolder.is_one(self.of(name))}
