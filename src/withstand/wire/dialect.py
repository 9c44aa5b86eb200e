"""The shape of a dialect, and what every dialect is asked with."""

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from withstand.request import Message, Request
from withstand.wire.reply import Reply, StreamReader


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a body that hold for a whole run."""

    model: str | None = None
    stream: bool = True
    min_tokens: bool = False
    """Send ``min_tokens`` = the wanted length too."""
    max_tokens_field: str | None = None
    """None = the dialect's own name."""
    extra_body: dict[str, Any] = {}


class Dialect(Protocol):
    """How an API is spoken."""

    name: str
    path: str

    def encode(self, request: Request, history: Sequence[Message], ask: Ask) -> bytes:
        """The JSON body. ``history`` holds the messages and answers of the turns before."""

    def stream_reader(self, reply: Reply) -> StreamReader:
        """For ``text/event-stream``."""

    def read_whole(self, body: bytes, reply: Reply, stamp_ns: int) -> None:
        """For ``application/json``."""
