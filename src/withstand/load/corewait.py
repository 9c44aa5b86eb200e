"""How long this process could have run and had no core, and how often it got one: the kernel's own account (Linux)."""

import os
from pathlib import Path
from typing import NamedTuple

_PATH = "/proc/self/schedstat"
_BYTES = 96


class Account(NamedTuple):
    """Since the process began."""

    wait_ns: int
    """It could have run, and had no core."""
    turns: int
    """How often it was put onto one."""


class CoreWait:
    """Two readings of the account, the present one and the one before; cheap enough to ask often."""

    __slots__ = ("_before", "_descriptor", "_now")

    def __init__(self) -> None:
        try:
            self._descriptor = os.open(_PATH, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._descriptor = -1
        self._now = self._before = self._read()

    def sample(self) -> None:
        """Another turn."""
        self._before = self._now
        self._now = self._read()

    def _read(self) -> Account | None:
        return _account(os.pread(self._descriptor, _BYTES, 0)) if self._descriptor >= 0 else None

    def grown_ns(self) -> int | None:
        """By how much the wait grew between the last two samples; None where nobody keeps account."""
        return None if self._now is None or self._before is None else self._now.wait_ns - self._before.wait_ns

    def turns(self) -> int:
        """How often a core was given between them; 0 where nobody keeps account."""
        return 0 if self._now is None or self._before is None else self._now.turns - self._before.turns

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def core_wait_ns() -> int | None:
    """All the time so far; None where the system does not count it."""
    try:
        account = _account(Path(_PATH).read_bytes())
    except OSError:
        return None
    return account.wait_ns if account is not None else None


def _account(text: bytes) -> Account | None:
    """Of three numbers: CPU time, time on the runqueue, turns."""
    words = text.split()
    return Account(int(words[1]), int(words[2])) if len(words) > 2 and all(map(bytes.isdigit, words)) else None
