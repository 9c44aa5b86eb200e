"""The folder of a plan with several targets: ``targets.json``, and below it a run folder for each, under its name."""

from pathlib import Path
from typing import Self

from withstand.files import is_there
from withstand.runs.commission import Commission, called_off, read_commission, taken_over, write_commission
from withstand.runs.folder import RunFolder, new_folder
from withstand.spec import Plan

_MANIFEST = "targets.json"


class Asked(Commission, frozen=True, kw_only=True):
    """``targets.json``."""

    plan: Plan
    """With all its targets, without secrets."""


class TargetsFolder:
    """One of them."""

    def __init__(self, path: Path, asked: Asked) -> None:
        self.path = path
        self.asked = asked
        self._is_new = False

    @classmethod
    def create(cls, path: Path | None, asked: Asked) -> Self:
        """A new one; by default ``runs/<date-time>``.

        Raises:
            UsageError: there is one already, or something else.
            StorageError: it cannot be made.
        """
        folder = cls(new_folder(path, _MANIFEST), asked)
        write_commission(folder.path / _MANIFEST, asked)
        folder._is_new = True
        return folder

    def take_over(self) -> None:
        """From now on this process writes it.

        Raises:
            UsageError: another one does.
        """
        self.asked = taken_over(self.path / _MANIFEST, self.asked)

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
        return cls(path, read_commission(path / _MANIFEST, Asked))

    def of(self, target: str) -> Path:
        """Where a target's run is, or will be."""
        return self.path / target

    def discard(self) -> None:
        """Of a plan of which nothing came; what others have put beside it stays, and so does what is gone on with."""
        if self._is_new:
            called_off(self.path / _MANIFEST)

    def begun(self) -> dict[str, Path]:
        """The run folders that there are, by target, in the plan's order."""
        return {name: self.of(name) for name in self.asked.plan.targets if RunFolder.is_one(self.of(name))}
