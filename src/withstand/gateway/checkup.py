"""Whether an engine's health checks have found it ill: pure, with the time passed in.

What is known lies in cells that other workers may share: whoever finds a check due makes it, and all go by what it
found. Two that find it due at once both make it, which does no harm.
"""

import zlib
from collections.abc import MutableSequence

from withstand.gateway.config import Health
from withstand.gateway.trouble import Note, Trouble


class Checkup:
    """Well while nothing else was found. Of each sequence the first is used.

    ``against``: checks in a row that speak against what it is held to be. ``due_s``: 0 = none was planned yet.
    ``checked``: whether one has been made. ``found``: what was wrong.
    """

    __slots__ = ("_against", "_checked", "_due_s", "_found", "_ill")

    def __init__(
        self,
        against: MutableSequence[int] | memoryview,
        ill: MutableSequence[int] | memoryview,
        due_s: "MutableSequence[float] | memoryview[float]",
        checked: MutableSequence[int] | memoryview,
        found: bytearray | memoryview,
    ) -> None:
        self._against, self._ill, self._due_s, self._checked = against, ill, due_s, checked
        self._found = Note(found)

    @property
    def is_known(self) -> bool:
        """A check has been made."""
        return bool(self._checked[0])

    @property
    def trouble(self) -> Trouble | None:
        """What the last check has found that failed."""
        return self._found.read()

    @property
    def is_ill(self) -> bool:
        """Ask it nothing new."""
        return bool(self._ill[0])

    def is_due(self, now_s: float, told: Health, name: str) -> bool:
        """Whether a check is to be made; then it is ours, and the next is planned. First ones are spread by name."""
        due_s = self._due_s[0]
        if due_s == 0.0:
            self._due_s[0] = now_s + told.every_s * (zlib.crc32(name.encode()) % 1000) / 1000
            return False
        if now_s < due_s <= now_s + told.every_s:  # later than that it was planned by a longer interval
            return False
        self._due_s[0] = now_s + told.every_s
        return True

    def found(self, told: Health, why: str) -> None:
        """A check is over; ``why`` says what is wrong, nothing = it is well."""
        self._checked[0], well = 1, not why
        if why:
            self._found.write(Trouble(why))
        if well != self.is_ill:
            self._against[0] = 0
            return
        self._against[0] += 1
        if self._against[0] >= (told.healthy if self.is_ill else told.unhealthy):
            self._ill[0], self._against[0] = int(not well), 0

    def forget(self) -> None:
        """It is not checked, or was started anew."""
        self._against[0], self._ill[0], self._due_s[0], self._checked[0] = 0, 0, 0.0, 0
