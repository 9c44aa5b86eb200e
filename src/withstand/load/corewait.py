"""How long this process could have run and had no core: the kernel's own account (Linux), cheap enough to ask often."""

import os
from pathlib import Path

_PATH = "/proc/self/schedstat"
_BYTES = 96


class CoreWait:
    """Two readings of the account, the present one and the one before."""

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

    def _read(self) -> int | None:
        return _wait_ns(os.pread(self._descriptor, _BYTES, 0)) if self._descriptor >= 0 else None

    def grown_ns(self) -> int | None:
        """By how much the wait grew between the last two samples; None where nobody keeps account."""
        return None if self._now is None or self._before is None else self._now - self._before

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def core_wait_ns() -> int | None:
    """All the time so far; None where the system does not count it."""
    try:
        return _wait_ns(Path(_PATH).read_bytes())
    except OSError:
        return None


def _wait_ns(account: bytes) -> int | None:
    """The second of three numbers: CPU time, time on the runqueue, turns."""
    words = account.split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else None
