"""A client's request as engines get it: under the name that each has for the model, and with the key that it wants."""

from typing import TYPE_CHECKING

from msgspec import Struct

from withstand.gateway import asked, heads
from withstand.gateway.incoming import Head
from withstand.gateway.keys import Keyring

if TYPE_CHECKING:
    from withstand.gateway.engine import Seat

_HEAD = b"%b%b%b%d\r\n\r\n"
_SEATS_MAX = 1024
"""For so many engines a head is remembered."""


class Outgoing:
    """``body`` may be another than the client's; ``named`` is the model, as the client calls it."""

    __slots__ = ("_keyring", "_request_id", "body", "head", "named")

    def __init__(self, head: Head, body: bytes, request_id: bytes, keyring: Keyring) -> None:
        self.head = head
        self.body = body
        self.named = ""
        self._request_id = request_id
        self._keyring = keyring

    def body_for(self, seat: "Seat") -> bytes:
        """The client's bytes, unless the engine knows the model by another name.

        Raises:
            ValueError: the body's field names are no UTF-8.
        """
        if seat.served == self.named:
            return self.body
        return asked.renamed(self.body, self.named, seat.served)

    def head_for(self, seat: "Seat", size: int) -> bytes:
        """That of a request with a body of ``size`` bytes."""
        known = self.head.lines.get(seat)
        if known is None or known.keyring is not self._keyring or known.credentials is not seat.credentials:
            known = self._lines(seat)
            if len(self.head.lines) < _SEATS_MAX:
                self.head.lines[seat] = known
        return _HEAD % (known.opening, self._request_id, known.rest, size)

    def head_for_us(self, seat: "Seat", size: int, more_dropped: frozenset[bytes]) -> bytes:
        """Likewise, where the answer is for the gateway itself, without some lines more."""
        lines = self._lines(seat, more_dropped)
        return _HEAD % (lines.opening, self._request_id, lines.rest, size)

    def _lines(self, seat: "Seat", more_dropped: frozenset[bytes] = frozenset()) -> "Lines":
        engine, keyring = seat.engine, self._keyring
        dropped = keyring.dropped(engine_has_key=seat.credentials is not None) | more_dropped
        key = b"" if seat.credentials is None else b"authorization: Bearer %b\r\n" % seat.credentials
        rest = b"\r\n%b%bcontent-length: " % (key, heads.end_to_end(self.head, dropped))
        return Lines(keyring, seat.credentials, heads.opening(self.head, engine.prefix, engine.host), rest)


class Lines(Struct, frozen=True):
    """A head on its way to an engine, but for the request's id and the body's length; and what it was made with."""

    keyring: Keyring
    credentials: bytes | None
    opening: bytes
    rest: bytes
