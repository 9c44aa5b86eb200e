"""A client's request as engines get it: under the name that each has for the model, and with the key that it wants."""

from typing import TYPE_CHECKING

from withstand.gateway import asked, heads
from withstand.gateway.heads import OURS
from withstand.gateway.incoming import Head
from withstand.gateway.keys import Keyring

if TYPE_CHECKING:
    from withstand.gateway.engine import Seat


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
        dropped = self._keyring.dropped if seat.credentials is None else OURS
        parts = self.head.parts.get(dropped)
        if parts is None:
            parts = self.head.parts[dropped] = heads.parts(self.head, dropped)
        return self._head_of(parts, seat, size)

    def head_for_us(self, seat: "Seat", size: int, more_dropped: frozenset[bytes]) -> bytes:
        """Likewise, where the answer is for the gateway itself, without some lines more."""
        dropped = self._keyring.dropped if seat.credentials is None else OURS
        return self._head_of(heads.parts(self.head, dropped | more_dropped), seat, size)

    def _head_of(self, parts: tuple[bytes, bytes], seat: "Seat", size: int) -> bytes:
        line, rest = parts
        engine = seat.engine
        key = b"" if seat.credentials is None else b"\r\nauthorization: Bearer %b" % seat.credentials
        end = b"%d\r\n\r\n" % size
        return b"".join((engine.post, line, engine.host_and_id, self._request_id, key, rest, end))
