"""What is read of an answer that goes by: its last pieces, once it is over. Pure."""

import re
from collections.abc import Iterable

PIECES = 4
"""The usage, ``[DONE]`` and the end of the chunks may each come in a piece of their own."""
_TOKENS = re.compile(rb'"\w+"\s*:\s*(\d{1,12})\b')
_EVENT_ENDS = (b"\n\n\r\n", b"\r\n\r\n\r\n")


def output_tokens(pieces: Iterable[bytes]) -> int | None:
    """How many the engine says it made; ``None`` where it does not say."""
    text = b"".join(pieces)
    place = text.rfind(b'"completion_tokens"')
    if place < 0:
        place = text.rfind(b'"output_tokens"')
    said = _TOKENS.match(text, place) if place >= 0 else None
    return int(said[1]) if said else None


def between_events(piece: bytes) -> bool:
    """Whether a chunked stream of events may go on after this piece: its event has ended, and so has its chunk."""
    return piece.endswith(_EVENT_ENDS)
