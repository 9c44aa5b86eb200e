"""How an answer that has begun is broken off so that its reader knows: pure."""

from msgspec import Struct

from withstand.gateway.chunks import END, chunk
from withstand.gateway.tap import between_events


class Framing(Struct, frozen=True):
    """How an answer that has begun tells its end."""

    events: bool
    chunked: bool
    open_ended: bool
    """The end of the connection is the end of the answer."""
    ours: bool = False
    """The chunks are made here, one of each piece."""


def last_words(framing: Framing, piece: bytes | None, event: bytes) -> bytes | None:
    """What to write before the connection is closed; ``piece`` is the last of the body, None where none has come.

    None where nothing can be said, in the midst of an event or of another kind of answer; a missing end says it then.
    """
    if not framing.events:
        return None
    if framing.chunked and (piece is None or between_events(piece)):
        return chunk(event) + END
    if (framing.open_ended or framing.ours) and (piece is None or piece.endswith((b"\n\n", b"\r\n\r\n"))):
        return chunk(event) + END if framing.ours else event
    return None
