"""A client's request as engines get it: under the name that each has for the model, and with the key that it wants."""

from typing import TYPE_CHECKING

from withstand.gateway import asked, heads
from withstand.gateway.incoming import Incoming
from withstand.gateway.keys import Keyring

if TYPE_CHECKING:
    from withstand.gateway.engine import Seat


class Outgoing:
    """``named`` is the model, as the client calls it."""

    __slots__ = ("_incoming", "_keyring", "_request_id", "body", "named")

    def __init__(self, incoming: Incoming, request_id: bytes, keyring: Keyring) -> None:
        self._incoming = incoming
        self._request_id = request_id
        self._keyring = keyring
        self.body = incoming.body
        self.named = ""

    def read(self) -> asked.Asked:
        """What the body asks for.

        Raises:
            ValueError: it names no model.
        """
        told = asked.read(self.body)
        self.named = told.model
        return told

    def header(self, name: bytes) -> bytes | None:
        """The client's first of that name, which is given in small letters."""
        return self._incoming.header(name)

    def body_for(self, seat: "Seat") -> bytes:
        """The client's bytes, unless the engine knows the model by another name.

        Raises:
            ValueError: the body's field names are no UTF-8.
        """
        if seat.served == self.named:
            return self.body
        return asked.renamed(self.body, self.named, seat.served)

    def head_for(self, seat: "Seat", size: int, more_dropped: frozenset[bytes] = frozenset()) -> bytes:
        """That of a request with a body of ``size`` bytes."""
        line = heads.request_line(self._incoming, seat.engine.prefix, seat.engine.host)
        key = b"" if seat.credentials is None else b"authorization: Bearer %b\r\n" % seat.credentials
        dropped = self._keyring.dropped(engine_has_key=seat.credentials is not None)
        if more_dropped:
            dropped |= more_dropped
        own = b"%bx-request-id: %b\r\n%b" % (line, self._request_id, key)
        return heads.request_head(self._incoming, own, size, dropped)
