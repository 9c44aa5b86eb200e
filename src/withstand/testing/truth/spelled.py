"""An event in the letters of server-sent events, in all the ways that the standard allows.

Each returns the bytes, and how many of them a reader must have to know the event: all up to the end of its last
``data`` line. Some readers wait for the blank line behind it, none can be earlier.
"""

from collections.abc import Callable

Spell = Callable[[bytes], tuple[bytes, int]]


def plain(payload: bytes) -> tuple[bytes, int]:
    """``data: …`` and a blank line."""
    return b"data: %b\n\n" % payload, len(payload) + 7


def crlf(payload: bytes) -> tuple[bytes, int]:
    """Lines end with CR LF."""
    return b"data: %b\r\n\r\n" % payload, len(payload) + 7


def no_space(payload: bytes) -> tuple[bytes, int]:
    """No space behind the colon."""
    return b"data:%b\n\n" % payload, len(payload) + 6


def more_fields(payload: bytes) -> tuple[bytes, int]:
    """``event``, ``id`` and ``retry`` beside ``data``, and a field that nobody knows."""
    before = b"event: message\nid: 7\nretry: 3000\nmood: good\n"
    return b"%bdata: %b\n\n" % (before, payload), len(before) + len(payload) + 7


def multi_line(payload: bytes) -> tuple[bytes, int]:
    """The JSON over two ``data`` lines, cut after its first comma, where a line break is white space."""
    first, comma, rest = payload.partition(b",")
    if not comma:
        return plain(payload)
    data = b"data: %b,\ndata: %b\n\n" % (first, rest)
    return data, len(data) - 1
