"""What is read of an answer that goes by: its last pieces, once it is over. Pure."""

import re
from collections.abc import Iterable

PIECES = 4
"""The usage, ``[DONE]`` and the end of the chunks may each come in a piece of their own."""
_NAMES = (b'"completion_tokens"', b'"output_tokens"')
_TOKENS = re.compile(rb'"\w+"\s*:\s*(\d{1,12})\b')
_EVENT_ENDS = (b"\n\n\r\n", b"\r\n\r\n\r\n")


def output_tokens(pieces: Iterable[bytes]) -> int | None:
    """How many the engine says it made; ``None`` where it does not say."""
    text = b"".join(pieces)
    place = max(map(text.rfind, _NAMES))
    said = _TOKENS.match(text, place) if place >= 0 else None
    return int(said[1]) if said else None


def between_events(piece: bytes) -> bool:
    """Whether a chunked stream of events may go on after this piece: its event has ended, and so has its chunk."""
    return piece.endswith(_EVENT_ENDS)
