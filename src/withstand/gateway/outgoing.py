"""A client's request as engines get it: under the name that each has for the model, and with the key that it wants."""

from typing import TYPE_CHECKING

from withstand.gateway import asked, heads
from withstand.gateway.incoming import Incoming
from withstand.gateway.keys import Keyring

if TYPE_CHECKING:
    from withstand.gateway.engine import Seat


class Outgoing:
    """``named`` is the model, as the client calls it; ``header`` is the incoming one's."""

    __slots__ = ("_incoming", "_keyring", "_request_id", "body", "header", "named")

    def __init__(self, incoming: Incoming, request_id: bytes, keyring: Keyring) -> None:
        self._incoming = incoming
        self._request_id = request_id
        self._keyring = keyring
        self.header = incoming.header
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
        key = b"" if seat.credentials is None else b"authorization: Bearer %b\r\n" % seat.credentials
        dropped = self._keyring.dropped(engine_has_key=seat.credentials is not None)
        if more_dropped:
            dropped |= more_dropped
        engine, own = seat.engine, (self._request_id, key, size)
        return heads.request_head(self._incoming, engine.prefix, engine.host, own, dropped)
