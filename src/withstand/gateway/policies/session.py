"""All requests of a session to one engine, as long as that has room: its cache holds what was said before.

Rendezvous hashing (Thaler, Ravishankar 1998) with weights: every engine draws a lot that depends on the session and
its own name alone, so one that comes or goes moves no session but those that it gets or had. Nothing is remembered,
and several processes agree.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b

import msgspec

from withstand.gateway.asked import Asked
from withstand.gateway.engine import Seat
from withstand.gateway.policies.bounds import within
from withstand.gateway.policies.lots import LeastInFlight
from withstand.gateway.policies.policy import Choose, Header

_LOTS = 1 << 64
_read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Session:
    """``by``: where a session's name may stand, the first that is there counts. Without one the least busy is asked."""

    def __init__(self, by: Sequence[str], bound: float, otherwise: LeastInFlight) -> None:
        self._readers = [_reader(place) for place in by]
        self._bound = bound
        self._otherwise = otherwise

    def chooser(self, asked: Asked, header: Header) -> Choose:
        """By the request's session."""
        for read in self._readers:
            session = read(asked, header)
            if session:
                return partial(self._choose, session)
        return self._otherwise.choose

    def _choose(self, session: bytes, seats: Sequence[Seat], now_s: float) -> Seat:
        return min(within(seats, now_s, self._bound), key=lambda seat: lot(session, seat, now_s))


def lot(session: bytes, seat: Seat, now_s: float) -> float:
    """Exponential with the rate of the seat's share: the least of all is each one's as often as its share says."""
    digest = blake2b(b"%b %b" % (seat.engine.label, session), digest_size=8).digest()
    return -math.log((int.from_bytes(digest) + 1) / (_LOTS + 1)) / seat.share(now_s)


def _reader(place: str) -> Callable[[Asked, Header], bytes | None]:
    """``header.NAME`` or ``body.FIELD``."""
    kind, _, name = place.partition(".")
    if kind == "header":
        key = name.lower().encode("ascii")
        return lambda _, header: header(key)
    outer, _, inner = name.partition(".")
    return lambda asked, _: _text(getattr(asked, outer), inner)


def _text(raw: msgspec.Raw, inner: str) -> bytes | None:
    """The string between its quotes; None where there is none, or none in ``inner``."""
    text = bytes(raw)
    if inner:
        try:
            text = bytes(_read_fields(text).get(inner, b""))
        except (msgspec.DecodeError, UnicodeDecodeError):  # metadata of another kind
            return None
    return text[1:-1] if text[:1] == b'"' else None
