"""One connection to an engine. It carries one request at a time, and writes the answer to the client as it comes.

The parser only finds the end of the head and of the message; its callbacks set flags, and what follows from them is
done when it has returned. Whole chunks of a stream are no news to it: they soon pass it by (a splice).
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, cast

import httptools

from withstand import clock
from withstand.gateway import heads

if TYPE_CHECKING:
    from withstand.gateway._splice import Splice
    from withstand.gateway.engine import Engine

_HEAD_BYTES_MAX = 256 << 10
_WAIT_PIECES, _WAIT_PIECES_MAX = 2, 1024
"""Before a stream is spliced, and where it would not stay so."""
_BROKEN = (httptools.HttpParserError, httptools.HttpParserUpgrade)


class Carried(Protocol):
    """Whose request a link carries: what it hears of it."""

    def answered(self, link: "Link", head: bytes, read_ns: int) -> None:
        """The answer's head is here, and maybe more of it; ``flow`` says where the rest goes."""

    def began(self, read_ns: int) -> None:
        """The first byte of the answer's body."""

    def splice(self, link: "Link") -> "Splice | None":
        """What the link reads goes to the client as it is, by itself; None = it cannot."""

    def finished(self, link: "Link") -> None:
        """The answer is complete."""

    def lost(self, link: "Link") -> None:
        """The connection broke before the answer was complete."""

    def broke(self, link: "Link", what: str) -> None:
        """What came is no answer."""


class AnswerHead:
    """What an engine says before the body, as far as the gateway must know it. Complete, it is not changed any more."""

    status = 0
    """0 = none has come yet, but for interim ones."""
    chunked = False
    length: bytes | None = None
    is_framed = False
    """It says where the body ends, in one way or the other."""
    is_events = False
    is_named = False
    """It has an x-request-id of its own."""
    has_hop_by_hop = False
    """It speaks of this connection."""
    is_reusable = False


_NONE = AnswerHead()


class Link(asyncio.Protocol):
    """``passage`` is whose request it carries; None while it waits for work."""

    __deletable__ = ("_parser",)

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.passage: Carried | None = None
        self.used = False
        """It has carried a request before."""
        self.transport = cast("asyncio.Transport", None)
        self._parser = httptools.HttpResponseParser(self)
        self._write: Callable[[bytes], None] = _nowhere
        self.remember: Callable[[bytes], None] = _nowhere
        self._reading = True
        self._splice: Splice | None = None
        self._coming: AnswerHead | None = None
        """While the parser is in it."""
        self._reset()

    def _reset(self) -> None:
        self.head = _NONE
        self.held = b""
        """What came of the head, while it is not complete."""
        self.body_at = 0
        """Where the head that is handed over ends."""
        self._head_over = False
        self._flowing = False
        self.is_complete = False
        """All of the answer has come."""
        self._goes_on = False
        """The engine does not close the connection behind it."""
        self._as_it_is = False
        """The client gets the bytes that come, chunks and all."""
        self._between_chunks = False
        self._wait_pieces = self._left_pieces = _WAIT_PIECES
        """How many pieces it was not spliced for last, and how many of them are still to come."""
        self.has_surplus = False
        """More has come than the answer."""

    # For the passage.

    def carry(self, passage: Carried, head: bytes, body: bytes) -> None:
        """Send a request; the passage hears what becomes of it."""
        self.passage = passage
        self.transport.write(head + body if len(body) < _COPIED_BYTES else head)
        if len(body) >= _COPIED_BYTES:
            self.transport.write(body)

    def flow(
        self, write: Callable[[bytes], None], remember: Callable[[bytes], None], *, as_it_is: bool = False
    ) -> None:
        """Where the answer's pieces go, from the next one on. ``as_it_is``: to the client, and just as they come."""
        self._write, self.remember = write, remember
        self._as_it_is = as_it_is and self.head.chunked
        self._head_over = True
        self.held = b""

    def pause(self) -> None:
        """The client does not keep up."""
        self._unsplice()
        if self._reading:
            self._reading = False
            self.transport.pause_reading()

    def resume(self) -> None:
        """It does again."""
        if not self._reading and self._splice is None:
            self._reading = True
            self.transport.resume_reading()

    def release(self) -> bool:
        """The passage is over; whether the connection may carry another."""
        self.passage = None
        self._write = self.remember = _nowhere
        is_fit = self.is_complete and self._goes_on and not (self.has_surplus or self._unsent)
        self._reset()
        self.used = True
        if not self._reading:
            self.resume()
        return is_fit and not self.transport.is_closing()

    def abort(self) -> None:
        """Stop the engine's work: the connection is what it hears that by."""
        self._unsplice()
        self.passage = None
        self._flowing = self._head_over = False
        self.transport.abort()

    def close(self) -> None:
        """Nobody needs it any more, nor what the engine has not read of a request that it has answered."""
        if self._unsent:
            self.transport.abort()
        else:
            self.transport.close()

    @property
    def _unsent(self) -> int:
        return int(self.transport.get_write_buffer_size())

    @property
    def touched(self) -> bool:
        """Something has come of the answer."""
        return bool(self.held) or self._head_over

    @property
    def ends_with_connection(self) -> bool:
        """Nothing but the connection's end says that the answer is whole."""
        return self.head.status != 0 and not (self.is_complete or self.head.is_framed)

    # asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.passage is None:
            self.transport.abort()  # an answer that nobody has asked for
        elif self._flowing:
            self._take(self.passage, data)
        else:
            self._begin(self.passage, data)

    def _take(self, passage: Carried, data: bytes, sent: int = 0) -> None:
        """A piece of the body; what comes behind the body is for nobody."""
        is_http = self._parsed(data)
        if self.is_complete and self.has_surplus:
            passage.broke(self, "The engine sent more than its answer.")
            return
        self._write(data[sent:])
        self.remember(data)
        if self.is_complete:
            passage.finished(self)
        elif not is_http:
            passage.broke(self, "The engine's answer is not HTTP any more.")
        elif self._as_it_is:
            self._splice_soon(data)

    def _splice_soon(self, data: bytes) -> None:
        """Where it stands between two chunks, and all is well, the next ones need not pass here."""
        self._left_pieces -= 1
        if self._left_pieces > 0 or not self._between_chunks or not data.endswith(b"\n"):
            return
        if self._reading and self.passage is not None and self.engine.context is None:
            self._splice = self.passage.splice(self)
            if self._splice is None:
                self._wait_longer()
            else:
                self._reading = False
                self.transport.pause_reading()

    def spliced(self, data: bytes, sent: int) -> None:
        """It is over: what came last is not ordinary, or could not be sent, or all of it."""
        self._splice = None
        self._wait_longer()
        self.resume()
        if data and self.passage is not None:
            self._take(self.passage, data, sent)

    def _wait_longer(self) -> None:
        self._wait_pieces = self._left_pieces = min(2 * self._wait_pieces, _WAIT_PIECES_MAX)

    def _unsplice(self) -> None:
        """Whoever asks for it does not want it read, or goes on to."""
        if self._splice is not None:
            self._splice.end()
            self._splice = None

    @property
    def descriptor(self) -> int:
        """Of its socket."""
        return int(self.transport.get_extra_info("socket").fileno())

    def _begin(self, passage: Carried, data: bytes) -> None:
        """The head, and the first piece of the body."""
        read_ns = clock.now_ns()
        if self._head_over:
            passage.began(read_ns)
            self._flowing = True
            self._take(passage, data)
        elif self.held or not self._knows(passage, data, read_ns):
            self._read_head(passage, data, read_ns)

    def _knows(self, passage: Carried, data: bytes, read_ns: int) -> bool:
        """Whether it is a whole answer with a head that is known, and then no news to the parser."""
        known = self.engine.memory.known
        at = 0 if known is None else known.body_at(data)
        if known is None or not at:
            return False
        self.engine.memory.strange = 0
        self.held, self.head, self.is_complete, self.body_at = data, known.head, True, at
        self._goes_on = known.head.is_reusable
        self._hand_over(passage, data, read_ns)
        return True

    def _read_head(self, passage: Carried, data: bytes, read_ns: int) -> None:
        is_first, self.held = not self.held, self.held + data
        if not self._parsed(data) or self.has_surplus:
            passage.broke(self, "The engine's answer is not HTTP.")
        elif self.head.status:
            head = heads.final(self.held)
            self.body_at = head.index(b"\r\n\r\n") + 4
            if is_first and self.head.status == HTTPStatus.OK and len(head) == len(data) and self.is_complete:
                self._learn(self.head, data)
            self._hand_over(passage, head, read_ns)
        elif len(self.held) > _HEAD_BYTES_MAX:
            passage.broke(self, "The head of the engine's answer has no end.")

    def _learn(self, head: AnswerHead, data: bytes) -> None:
        """The read was a whole answer, which the next one may resemble."""
        if head.length is not None and head.length.isdigit():
            self.engine.memory.meet(head, data, int(head.length))

    def _hand_over(self, passage: Carried, head: bytes, read_ns: int) -> None:
        """The head is complete: the passage takes it, or leaves it and asks another engine."""
        passage.answered(self, head, read_ns)
        if self._head_over and len(head) > self.body_at:
            passage.began(read_ns)
            self._flowing = True
        if self.is_complete and self.passage is not None:
            passage.finished(self)

    def _parsed(self, data: bytes) -> bool:
        try:
            self._parser.feed_data(data)
        except _BROKEN:
            self.has_surplus = True
            return False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._unsplice()
        del self._parser  # it holds this object, and both would wait for the collector
        if self.passage is None:
            self.engine.forget(self)
        elif exc is None and self.ends_with_connection:
            self.is_complete = True
            self.passage.finished(self)
        else:
            self.passage.lost(self)

    # httptools.

    def on_message_begin(self) -> None:
        self.has_surplus = self.is_complete
        self._coming = AnswerHead()

    def on_header(self, name: bytes, value: bytes) -> None:
        name, head = name.lower(), self._coming
        if head is None:  # what comes after the chunks says nothing to anybody
            return
        if name == b"content-type":
            head.is_events = value.lower().startswith(b"text/event-stream")
        elif name == b"content-length":
            head.length, head.is_framed = value, True
        elif name == b"transfer-encoding":
            head.chunked = head.is_framed = True
        elif name == b"x-request-id":
            head.is_named = True
        elif name in _HOP_BY_HOP:
            head.has_hop_by_hop = True

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        head, self._coming = self._coming, None
        if head is not None and status >= 200 and not self.has_surplus:
            head.status, head.is_reusable = status, self._parser.should_keep_alive()
            self.head = head

    def on_chunk_header(self) -> None:
        self._between_chunks = False

    def on_chunk_complete(self) -> None:
        self._between_chunks = True

    def on_message_complete(self) -> None:
        self._goes_on = self._parser.should_keep_alive()  # even a trailer may say that it does not
        self.is_complete = self.head.status >= 200  # 100 Continue and 103 Early Hints are messages without being it


_HOP_BY_HOP = frozenset((b"connection", b"keep-alive", b"proxy-connection"))
_COPIED_BYTES = 64 << 10
"""Up to here one write of a copy is cheaper than two."""


def _nowhere(_: bytes) -> None:
    """Where pieces go that are for nobody."""
