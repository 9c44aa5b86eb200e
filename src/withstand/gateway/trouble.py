"""What was wrong with an engine when it was asked last, in words for its owner: pure.

It is noted in memory that other workers may share, so that all say the same: who writes last is right, or nearly so.
"""

import socket
import ssl

from msgspec import Struct


class Trouble(Struct, frozen=True):
    """``why`` follows a colon. ``unreachable``: there was not even a connection."""

    why: str
    unreachable: bool = False


_SAID, _UNREACHABLE = 1, 2


class Note:
    """The last trouble, over or not; ``memory`` is all zeros where there was none."""

    __slots__ = ("_memory",)

    def __init__(self, memory: bytearray | memoryview) -> None:
        self._memory = memory

    @property
    def is_unreachable(self) -> bool:
        """There was not even a connection."""
        return self._memory[0] == _UNREACHABLE

    def write(self, trouble: Trouble) -> None:
        """From now on it is this one; of a long reason the beginning."""
        room = len(self._memory) - 1
        self._memory[1:] = trouble.why.encode("utf-8")[:room].ljust(room, b"\0")
        self._memory[0] = _UNREACHABLE if trouble.unreachable else _SAID

    def read(self) -> Trouble | None:
        """None = there was none."""
        if not self._memory[0]:
            return None
        return Trouble(bytes(self._memory[1:]).rstrip(b"\0").decode("utf-8", "ignore"), self.is_unreachable)


def why_of(e: OSError | ValueError) -> str:
    """Why there is no connection, or no answer."""
    if isinstance(e, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({e.verify_message})"
    if isinstance(e, ssl.SSLError):
        return (
            f"it speaks no TLS ({(e.reason or str(e)).replace('_', ' ').lower()}); should its url begin with http://?"
        )
    if isinstance(e, socket.gaierror):
        return f"its host's name cannot be resolved ({e.strerror})"
    if isinstance(e, ConnectionRefusedError):
        return "connection refused"
    if isinstance(e, TimeoutError):
        return "no answer in time"
    return getattr(e, "strerror", None) or str(e) or type(e).__name__
