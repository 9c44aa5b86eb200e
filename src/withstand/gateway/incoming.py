"""One request as it came in: pure facts, filled in by the door's parser."""

import os
import re
import secrets
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from withstand.gateway.routes import Route

_IDS = [count(secrets.randbits(48))]
os.register_at_fork(after_in_child=lambda: _IDS.__setitem__(0, count(secrets.randbits(48))))
_CLEAN_ID = re.compile(rb"[\x21-\x7e]{1,256}")


class Head:
    """What a client says before the body. Complete, it is not changed any more: later requests may share it.

    ``headers`` keep the client's spelling and order, with the name in small letters in front; the body's length is not
    among them. ``header`` gives the first of a name, which is given in small letters, or None.
    """

    __slots__ = ("first", "header", "headers", "keeps_alive", "length", "method", "parts", "route", "target", "version")

    def __init__(self) -> None:
        self.method = b""
        self.target = b""
        self.version = "1.1"
        self.headers: list[tuple[bytes, bytes, bytes]] = []
        self.first: dict[bytes, bytes] = {}
        """Of each name, in small letters, the first value."""
        self.header: Callable[[bytes], bytes | None] = self.first.get
        self.length: bytes | None = None
        """The body's, as the client said it for the first request that had this head."""
        self.keeps_alive = True
        self.route: Route | None = None
        """None = it is not for an engine."""
        self.parts: dict[frozenset[bytes], tuple[bytes, bytes]] = {}
        """What of it goes to engines, without the lines of these names, as far as that was asked for."""

    @property
    def size(self) -> int:
        """Bytes of the target and the headers, with what stands between and behind them."""
        length = 0 if self.length is None else len(b"content-length: \r\n") + len(self.length)
        return len(self.target) + sum(len(name) + len(value) + 4 for _, name, value in self.headers) + length

    def add_header(self, name: bytes, value: bytes) -> None:
        """One more."""
        key = name.lower()
        if key == b"content-length":
            self.length = value
            return
        self.headers.append((key, name, value))
        self.first.setdefault(key, value)


class Incoming:
    """Head and body. ``size`` is of what has come of it; ``held`` is what it counts for among all that is held."""

    __slots__ = ("body", "head", "held", "read_ns", "size")

    def __init__(self, head: Head, read_ns: int = 0, body: bytes = b"") -> None:
        self.head = head
        self.read_ns = read_ns
        """When the read began that brought its last byte."""
        self.body = body
        """Nothing until all of it is here."""
        self.size = 0
        self.held = 0


def request_id_of(said: bytes | None) -> bytes:
    """The client's own where it may stand in a log line, else a new one. It is never changed: engines read it."""
    if said is not None and _CLEAN_ID.fullmatch(said):
        return said
    return b"gw-%012x" % next(_IDS[0])
