"""The folder of two sides that are measured in turn: ``ab.json``, and below it a run folder for each block.

A block counts once its pair is whole: between one that was measured today and one of tomorrow lies more than a turn.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

import msgspec

from withstand.control.interleaving import BLOCKS_MAX, BLOCKS_MIN, Block, Pair, blocks_of, pairs_of
from withstand.files import is_there
from withstand.runs.commission import Commission, called_off, read_commission, taken_over, write_commission
from withstand.runs.folder import RunFolder, new_folder
from withstand.runs.manifest import RunState
from withstand.spec import Plan

_MANIFEST = "ab.json"


class AskedSide(msgspec.Struct, frozen=True, kw_only=True):
    """A or B."""

    label: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
    plan: Plan
    """Of all its blocks, without secrets; each block's seed is this one's and its pair's number."""


class AskedTurns(Commission, frozen=True, kw_only=True):
    """``ab.json``."""

    a: AskedSide
    b: AskedSide
    pairs: Annotated[int, msgspec.Meta(ge=BLOCKS_MIN, multiple_of=2, le=BLOCKS_MAX)]
    reset_cache: bool = True
    """Whether the server is asked to forget all prompts before each block."""
    force: bool = False
    """Whether they are compared although their models differ."""
    resets: Mapping[str, str] = {}
    """What came of it, by block."""

    @property
    def sides(self) -> tuple[AskedSide, AskedSide]:
        """A and B."""
        return (self.a, self.b)


class TurnsFolder:
    """One of them."""

    def __init__(self, path: Path, asked: AskedTurns) -> None:
        self.path = path
        self.asked = asked
        self._is_new = False

    @classmethod
    def create(cls, path: Path | None, asked: AskedTurns) -> Self:
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

    def note_reset(self, block: Block, what: str) -> None:
        """What came of asking the server to forget, before a block."""
        self.asked = msgspec.structs.replace(self.asked, resets={**self.asked.resets, block.name: what})
        write_commission(self.path / _MANIFEST, self.asked)

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
        return cls(path, read_commission(path / _MANIFEST, AskedTurns))

    def discard(self) -> None:
        """Of a comparison of which nothing came; what is gone on with stays."""
        if self._is_new:
            called_off(self.path / _MANIFEST)

    def of(self, block: Block) -> Path:
        """Where a block's run is, or will be."""
        return self.path / block.name

    def begun(self) -> bool:
        """Whether there is a block, whole or not."""
        return any(RunFolder.is_one(self.of(block)) for block in blocks_of(self.asked.pairs))

    def whole(self) -> list[Pair]:
        """The pairs that are measured."""
        return [pair for pair in pairs_of(self.asked.pairs) if self._is_whole(pair)]

    def left(self) -> list[Pair]:
        """Those that are not."""
        return [pair for pair in pairs_of(self.asked.pairs) if not self._is_whole(pair)]

    def clear(self, pair: Pair) -> None:
        """What there is of a pair that will be measured anew."""
        for block in pair:
            shutil.rmtree(self.of(block), ignore_errors=True)

    def _is_whole(self, pair: Pair) -> bool:
        paths = [self.of(block) for block in pair]
        return all(RunFolder.is_one(path) and RunFolder.open(path).manifest.state is RunState.DONE for path in paths)
