"""What workers and their foreman say to each other: one JSON object a line, over a socket that nobody else has."""

import msgspec
from msgspec import Struct


class Ready(Struct, tag="ready"):
    """A worker listens."""


class Order(Struct, tag="order"):
    """A worker was asked for a change that all must make; ``told`` is JSON."""

    number: int
    kind: str
    told: str


class Done(Struct, tag="done"):
    """It has made it, or could not."""

    number: int
    good: bool


class Scrape(Struct, tag="scrape"):
    """A worker was asked for the metrics of all."""

    number: int


class Page(Struct, tag="page"):
    """A worker's own metrics, to a ``Tell``."""

    text: str


class Make(Struct, tag="make"):
    """The change that a worker (``by``) was asked for, in the order that holds for all."""

    by: int
    number: int
    kind: str
    told: str


class Begin(Struct, tag="begin"):
    """No more of what happened before; go on and listen."""


class Tell(Struct, tag="tell"):
    """The foreman wants a ``Page``."""


class Waits(Struct, tag="waits"):
    """At its end a worker has requests under way, which may take so long."""

    requests: int
    most_s: float


class Pages(Struct, tag="pages"):
    """What the others have said, and what those who are gone had counted."""

    number: int
    texts: list[str]


Word = Ready | Order | Done | Scrape | Page | Make | Begin | Tell | Waits | Pages
_decode = msgspec.json.Decoder(Word).decode


def line_of(word: Word) -> bytes:
    """As it is sent."""
    return msgspec.json.encode(word) + b"\n"


class Lines:
    """Puts what arrives together again."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Word]:
        """The words that are complete now."""
        self._rest += data
        *whole, rest = self._rest.split(b"\n")
        self._rest = rest
        return [_decode(line) for line in whole]
