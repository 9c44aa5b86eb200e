"""Where a reader is: the file, and the place in it. Makes ``Source``s and builders."""

import msgspec

from withstand.interop.build import RunBuilder
from withstand.interop.shape import Source


class Place(msgspec.Struct, frozen=True):
    """One file, one place in it."""

    file: str
    position: str | None = None

    def at(self, position: str) -> "Place":
        """A place within this one."""
        return Place(self.file, f"{self.position}, {position}" if self.position else position)

    def builder(self, form: str, tool: str, version: str | None = None) -> RunBuilder:
        """A run that stands here."""
        return RunBuilder(Source(file=self.file, format=form, tool=tool, tool_version=version, position=self.position))
