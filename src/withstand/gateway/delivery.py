"""An answer's last stretch: in which framing it goes to the client, and what the client is told where there is none.

It decides nothing and knows no engine. An answer goes on as the engine framed it. It is framed anew where only the end
of the engine's connection would be its end, and where comments were sent before it: then the head that the client has
is ours, only the body follows, and what is no stream of events becomes an error event.
"""

from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING

from withstand.gateway import heads, refusals, tap
from withstand.gateway.chunks import END, chunk, joined
from withstand.gateway.last_words import Framing, last_words
from withstand.gateway.refusals import Refusal
from withstand.gateway.routes import Dialect

if TYPE_CHECKING:
    from withstand.gateway.link import Link

_OPENING = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\nx-request-id: %b%b\r\n\r\n"
)
_COMMENT = chunk(b": the engine has not begun yet\n\n")
_GATHERED_BYTES_MAX = 64 << 10


class Delivery:
    """Of one request. ``write`` is the client's transport's; ``old`` is a client of HTTP/1.0, which reads no chunks."""

    __slots__ = ("_dialect", "_gathered", "_old", "_write", "begun", "framing", "head_is_out", "pieces", "status")

    def __init__(self, write: Callable[[bytes], None], dialect: Dialect, *, old: bool) -> None:
        self._write = write
        self._dialect = dialect
        self._old = old
        self._gathered: list[bytes] | None = None
        """An answer that must become an event."""
        self.pieces: deque[bytes] = deque(maxlen=tap.PIECES)
        """The last ones, as the engine sent them."""
        self.status = 0
        """What the client has been told."""
        self.head_is_out = False
        self.framing: Framing | None = None
        """None until an engine's answer has begun."""
        self.begun = False
        """A byte of an answer's body has come."""

    # Before there is an answer.

    def comment(self, request_id: bytes, lines: bytes) -> None:
        """Something that proxies and clients in between can hear, and that is no part of an answer."""
        if self.framing is None and not self.head_is_out:
            self._write(_OPENING % (request_id, lines))
            self.head_is_out, self.status = True, 200
        elif self.framing is not None and not self._is_stream:
            return
        self._write(_COMMENT)

    @property
    def may_start_over(self) -> bool:
        """An engine's answer has begun, but the client has seen nothing of it that another could not go on with."""
        return self._is_stream and not self.begun

    @property
    def has_begun(self) -> bool:
        """The client has seen what no other answer could go on with."""
        return self.framing is not None and not self.may_start_over

    def start_over(self) -> None:
        """Another engine is asked."""
        self.framing = self._gathered = None
        self.pieces.clear()

    @property
    def _is_stream(self) -> bool:
        framing = self.framing
        return framing is not None and framing.events and (framing.chunked or framing.ours)

    # An answer.

    def begin(self, link: "Link", head: bytes, lines: bytes) -> None:
        """The answer's head, with our ``lines`` in it; what follows goes from the link to the client without us."""
        end = head.index(b"\r\n\r\n") + 4
        self.pieces.append(head)
        if self.head_is_out:
            self._go_on(link, head[end:])
            return
        open_ended = link.ends_with_connection
        ours = open_ended and not self._old
        self.head_is_out, self.status = True, link.status
        self.framing = Framing(link.is_events, link.chunked, open_ended and self._old, ours)
        if self._old:
            self._write(heads.with_lines(head, lines))
        else:
            body = head[end:]
            self._write(heads.renewed(head[:end], lines, link) + (chunk(body) if ours and body else body))
        link.flow(self._write_chunk if ours else self._write, self.pieces.append)

    def _go_on(self, link: "Link", body: bytes) -> None:
        """Behind a head of our own."""
        if link.status != HTTPStatus.OK or not link.is_events:
            self.framing = Framing(events=False, chunked=False, open_ended=False)
            self._gathered = [body]
            write: Callable[[bytes], None] = self._gather
        else:
            self.framing = Framing(events=True, chunked=link.chunked, open_ended=False, ours=not link.chunked)
            write = self._write if link.chunked else self._write_chunk
            if body:
                write(body)
        link.flow(write, self.pieces.append)

    def _write_chunk(self, data: bytes) -> None:
        self._write(chunk(data))

    def _gather(self, data: bytes) -> None:
        assert self._gathered is not None
        if sum(map(len, self._gathered)) < _GATHERED_BYTES_MAX:
            self._gathered.append(data)

    def finish(self, link: "Link") -> bool:
        """The answer is complete; whether its end can be told from what may follow it."""
        framing = self.framing
        assert framing is not None
        if self._gathered is not None:
            body = b"".join(self._gathered)
            told = refusals.relayed(link.status, joined(body) if link.chunked else body, self._dialect)
            self._write(chunk(told) + END)
        elif framing.ours:
            self._write(END)
        return not (framing.open_ended or link.has_surplus)

    def show(self, status: int, head: bytes, lines: bytes, body: bytes) -> None:
        """An answer that is here as a whole, its body without framing."""
        if self.head_is_out:
            self._write(chunk(refusals.relayed(status, body, self._dialect)) + END)
            return
        self.head_is_out, self.status = True, status
        self._write(heads.whole(head, lines, len(body)) + body)

    # No answer, or no more of it.

    def refuse(self, refusal: Refusal, request_id: bytes, lines: bytes) -> None:
        """Nothing of an answer has been sent: the refusal is the answer, with our ``lines`` in its head."""
        self.head_is_out, self.status = True, refusal.status
        self._write(refusals.answer(refusal, self._dialect, request_id, lines))

    def break_off(self, refusal: Refusal) -> bool:
        """In the answer's last event, where that can be read; whether only a reset tells that something is missing."""
        event = refusals.event(refusal, self._dialect)
        if self.framing is None or self._gathered is not None:
            self._write(chunk(event) + END)
            return False
        words = last_words(self.framing, self.pieces[-1] if self.begun else None, event)
        if words is not None:
            self._write(words)
        return words is None and self.framing.open_ended
