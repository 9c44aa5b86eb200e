"""One request as it came in: pure facts, filled in by the door's parser."""

import os
import re
import secrets
from collections.abc import Callable
from itertools import count

_IDS = [count(secrets.randbits(48))]
os.register_at_fork(after_in_child=lambda: _IDS.__setitem__(0, count(secrets.randbits(48))))
_CLEAN_ID = re.compile(rb"[\x21-\x7e]{1,256}")


class Incoming:
    """Head and body. ``headers`` keep the client's spelling and order, with the name in small letters in front.

    ``header`` gives the first of a name, which is given in small letters, or None. ``size`` is the body's, in bytes;
    ``held`` is what it counts for among all that the process holds.
    """

    __slots__ = (
        "first",
        "header",
        "headers",
        "held",
        "keeps_alive",
        "method",
        "parts",
        "read_ns",
        "size",
        "target",
        "version",
    )

    def __init__(self) -> None:
        self.method = b""
        self.target = b""
        self.version = "1.1"
        self.headers: list[tuple[bytes, bytes, bytes]] = []
        self.first: dict[bytes, bytes] = {}
        """Of each name, in small letters, the first value."""
        self.header: Callable[[bytes], bytes | None] = self.first.get
        self.parts: list[bytes] = []
        self.size = 0
        self.held = 0
        self.keeps_alive = True
        self.read_ns = 0
        """When the read began that brought its last byte."""

    @property
    def head_bytes(self) -> int:
        """Of the target and the headers, with what stands between and behind them."""
        return len(self.target) + sum(len(name) + len(value) + 4 for _, name, value in self.headers)

    @property
    def body(self) -> bytes:
        """All of it."""
        if len(self.parts) != 1:
            self.parts = [b"".join(self.parts)]  # not twice in memory
        return self.parts[0]

    def add_header(self, name: bytes, value: bytes) -> None:
        """One more."""
        key = name.lower()
        self.headers.append((key, name, value))
        self.first.setdefault(key, value)


def request_id(said: bytes | None) -> bytes:
    """The client's own where it may stand in a log line, else a new one. It is never changed: engines read it."""
    if said is not None and _CLEAN_ID.fullmatch(said):
        return said
    return b"gw-%012x" % next(_IDS[0])
