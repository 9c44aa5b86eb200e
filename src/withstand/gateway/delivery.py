"""An answer's last stretch: in which framing it goes to the client, and what the client is told where there is none.

It decides nothing and knows no engine. An answer goes on as the engine framed it. It is framed anew where only the end
of the engine's connection would be its end, and where comments were sent before it: then the head that the client has
is ours, only the body follows, and what is no stream of events becomes an error event.
"""

from collections import deque
from collections.abc import Callable, MutableSequence
from http import HTTPStatus
from typing import TYPE_CHECKING

from withstand.gateway import heads, refusals, tap
from withstand.gateway.chunks import END, Unframing, chunk, joined
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
_SMALL_BYTES = 256


class Delivery:
    """Of one request. ``write`` is the client's transport's; ``old`` is a client of HTTP/1.0, which reads no chunks."""

    __slots__ = ("_dialect", "_gathered", "_old", "_write", "begun", "framing", "head_is_out", "pieces", "status")

    def __init__(self, write: Callable[[bytes], None], dialect: Dialect, *, old: bool) -> None:
        self._write = write
        self._dialect = dialect
        self._old = old
        self._gathered: list[bytes] | None = None
        """An answer that must become an event."""
        self.pieces: MutableSequence[bytes] | None = None
        """The last ones, as the engine sent them; None = none has come, unless they are to be remembered elsewhere."""
        self.status = 0
        """What the client has been told."""
        self.head_is_out = False
        self.framing: Framing | None = None
        """None until an engine's answer has begun."""
        self.begun = False
        """A byte of an answer's body has come."""

    @property
    def latest(self) -> bytes | None:
        """The last piece of an answer."""
        return self.pieces[-1] if self.pieces else None

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
        if self.pieces is not None:
            self.pieces.clear()

    @property
    def _is_stream(self) -> bool:
        framing = self.framing
        return framing is not None and framing.events and (framing.chunked or framing.ours)

    # An answer.

    def begin(self, link: "Link", head: bytes, lines: bytes) -> None:
        """The answer's head, with our ``lines`` in it; what follows goes from the link to the client without us."""
        told = link.head
        pieces = self.pieces
        if pieces is None:
            pieces = self.pieces = [] if link.is_complete else deque(maxlen=tap.PIECES)
        pieces.append(head)
        if self.head_is_out:
            self._go_on(link, head[link.body_at :])
            return
        if self._old and told.chunked:
            self._unframe(link, head, lines)
            return
        open_ended = not (link.is_complete or told.is_framed)
        ours = open_ended and not self._old
        self.head_is_out, self.status = True, told.status
        self.framing = Framing(told.is_events, told.chunked, open_ended and self._old, ours)
        if self._old or not (open_ended or told.has_hop_by_hop or not head.startswith(b"HTTP/1.1")):
            self._write(heads.with_lines(head, lines))
        else:
            body, head = head[link.body_at :], head[: link.body_at]
            head = heads.renewed(head, lines, hop_by_hop=told.has_hop_by_hop, open_ended=open_ended)
            self._write(head + (chunk(body) if ours and body else body))
        link.flow(self._write_chunk if ours else self._write, self._remember, as_it_is=not ours)

    def _unframe(self, link: "Link", head: bytes, lines: bytes) -> None:
        """For a client of HTTP/1.0: many engines answer it in chunks all the same."""
        self.head_is_out, self.status = True, link.head.status
        self.framing = Framing(link.head.is_events, chunked=False, open_ended=True)
        body_in = Unframing().body_in
        self._write(heads.closing(head[: link.body_at], lines) + body_in(head[link.body_at :]))
        link.flow(lambda data: self._write(body_in(data)), self._remember)

    def _go_on(self, link: "Link", body: bytes) -> None:
        """Behind a head of our own."""
        told = link.head
        if told.status != HTTPStatus.OK or not told.is_events:
            self.framing = Framing(events=False, chunked=False, open_ended=False)
            self._gathered = [body]
            write: Callable[[bytes], None] = self._gather
        else:
            self.framing = Framing(events=True, chunked=told.chunked, open_ended=False, ours=not told.chunked)
            write = self._write if told.chunked else self._write_chunk
            if body:
                write(body)
        link.flow(write, self._remember, as_it_is=write is self._write)

    def _remember(self, data: bytes) -> None:
        """Small pieces become one, or the last few might not be the last event. Each is another object than before."""
        pieces = self.pieces
        assert pieces is not None
        if len(data) < _SMALL_BYTES and len(pieces[-1]) < _SMALL_BYTES:
            pieces[-1] += data
        else:
            pieces.append(data)

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
            whole = joined(body) if link.head.chunked else body
            told = refusals.relayed(link.head.status, whole, self._dialect)
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
        words = last_words(self.framing, self.latest if self.begun else None, event)
        if words is not None:
            self._write(words)
        return words is None and self.framing.open_ended
