"""What one client's connection has to say: bytes → requests, or why it is not read any more.

It neither writes nor answers. A head that the client has sent before is known again without the parser (``familiar``).
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import httptools

from withstand.gateway import refusals
from withstand.gateway.familiar import Memory
from withstand.gateway.heads import plain_head
from withstand.gateway.incoming import Head, Incoming
from withstand.gateway.refusals import RETRY_AFTER_S, Refusal
from withstand.gateway.routes import origin_form, route_of

if TYPE_CHECKING:
    from withstand.gateway.house import House

_REQUEST_BYTES = 1024
"""What a request takes beside its body, about."""
_NOT_LEARNED = frozenset((b"expect", b"transfer-encoding", b"upgrade"))


class Reader:
    """``go_on`` is called where a client waits for leave to send its body."""

    __deletable__ = ("_go_on", "_parser")

    def __init__(self, house: "House", go_on: Callable[[], None]) -> None:
        self.complete: deque[Incoming] = deque()
        """Requests, in their order, until the door takes them."""
        self.coming: Incoming | None = None
        """The one that is not complete."""
        self.refusal: Refusal | None = None
        """Why nothing is read any more."""
        self.refused: Incoming | None = None
        """That was complete by then."""
        self._house = house
        self._go_on = go_on
        self._parser = httptools.HttpRequestParser(self)
        self._memory = Memory[Head]()
        self._head: Head | None = None
        """While it is not complete."""
        self._body = bytearray()
        """What is here of the one that is coming; a list of parts would be many times as large where they are tiny."""
        self._bare_bytes = 0
        """Of the reads since that of the current request's first byte, or of the last byte of its body."""
        self._read_bytes = 0
        self._read_ns = 0

    def recognized(self, data: bytes, read_ns: int) -> Incoming | None:
        """Another request with the last head, if that is all that was read: then it is no news to the parser."""
        known = self._memory.known
        if known is None or self.coming is not None or self.complete:
            return None
        at = known.body_at(data)
        size, house = len(data) - at, self._house
        limits = house.config.limits
        if not at or size > limits.body_bytes or at > limits.head_bytes:
            return None
        if house.held_bytes + _REQUEST_BYTES + size > limits.held_bytes:
            return None
        incoming = Incoming(known.head, read_ns, data[at:])
        incoming.size = size
        house.hold(incoming, _REQUEST_BYTES + size)
        self._memory.strange = 0
        return incoming

    def read(self, data: bytes, read_ns: int) -> None:
        """What came of it is in ``complete``, ``coming`` and ``refusal``."""
        self._read_ns, self._read_bytes = read_ns, len(data)
        begun, parser = self.coming, self._parser
        at_start = begun is None and not self.complete
        self._bare_bytes += len(data)
        self._feed(data)
        if self.coming is not None:
            self._count_body(self.coming)
            if self.coming is begun:
                self._limit_head(self._bare_bytes)
        if at_start and self._parser is parser and self.coming is None and self.refusal is None:
            self._learn(data)

    def _learn(self, data: bytes) -> None:
        """If the read brought one request and nothing else, the next one may resemble it."""
        if len(self.complete) == 1:
            incoming = self.complete[0]
            head = incoming.head
            if head.route is not None and head.keeps_alive and _NOT_LEARNED.isdisjoint(head.first):
                self._memory.meet(head, data, incoming.size)

    def _feed(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = self._fed(left)

    def _fed(self, data: memoryview) -> memoryview:
        """What is left, for the parser that there is then."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as e:
            if head := self._without_upgrade():
                self._parser = httptools.HttpRequestParser(self)
                self._fed(memoryview(head))
                return data[e.args[0] :]
        except httptools.HttpParserCallbackError as e:
            raise e.__context__ or e from None  # a fault of our own
        except httptools.HttpParserError as e:
            self.refusal = self.refusal or refusals.bad_request(f"This is not HTTP: {e}.", closes=True)
        return data[:0]

    def close(self) -> None:
        """The connection is lost, and what it had said is not held any more."""
        del self._parser, self._go_on  # they hold this object and the door, and all would wait for the collector
        for incoming in (self.coming, *self.complete):
            if incoming is not None:
                self._house.let_go(incoming)
        self.complete.clear()

    # httptools.

    def on_message_begin(self) -> None:
        self._head = Head()
        self.coming = Incoming(self._head)
        self._body = bytearray()
        self._bare_bytes = 0

    def on_url(self, part: bytes) -> None:
        assert self._head is not None
        self._head.target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is not None:  # what comes after the chunks says nothing to anybody
            self._head.add_header(name, value)

    def on_headers_complete(self) -> None:
        incoming, head, self._head = self.coming, self._head, None
        assert incoming is not None
        assert head is not None
        if self._bare_bytes or self._read_bytes > self._house.config.limits.head_bytes:
            self._limit_head(head.size)
        head.method = self._parser.get_method()
        head.version = self._parser.get_http_version()
        head.keeps_alive = self._parser.should_keep_alive()
        head.route = route_of(head.method, head.target)
        if head.route is None and not head.target.startswith(b"/"):
            head.target = origin_form(head.target)
            head.route = route_of(head.method, head.target)
        self.refusal = self.refusal or _ambiguous(head)
        if head.length is not None and int(head.length) > self._house.config.limits.body_bytes:
            self._refuse_body()
        if not self._house.hold(incoming, _REQUEST_BYTES):
            self.refusal = self.refusal or refusals.overcrowded(RETRY_AFTER_S)
        if head.header(b"expect") is not None and head.version != "1.0" and not (self.refusal or self.complete):
            self._go_on()

    def on_body(self, part: bytes) -> None:
        self._body += part  # and no more than that: parts may be tiny, and there may be many in one read
        self._bare_bytes = 0

    def _count_body(self, incoming: Incoming) -> None:
        """What has come of it since it was counted last."""
        more, limits = len(self._body) - incoming.size, self._house.config.limits
        incoming.size += more
        if incoming.size > limits.body_bytes:
            self._refuse_body()
        elif more and not self._house.hold(incoming, more):
            self.refusal = self.refusal or refusals.overcrowded(RETRY_AFTER_S)
        if self.refusal is not None:
            self._body.clear()
            self._house.let_go(incoming)

    def on_message_complete(self) -> None:
        incoming = self.coming
        if not self._parser.should_keep_alive():
            self._memory.known = None  # what comes behind the last request is none; even a trailer may say so
        if incoming is not None and not self._parser.should_upgrade():
            incoming.read_ns = self._read_ns
            self._count_body(incoming)
            if self.refusal is None:
                incoming.body, self._body = bytes(self._body), bytearray()
                self.complete.append(incoming)
            else:
                self.refused = incoming
            self.coming = None

    def _refuse_body(self) -> None:
        message = f"The body has more than {self._house.config.limits.body_bytes} bytes."
        self.refusal = self.refusal or refusals.bad_request(message, status=413, closes=True)

    def _limit_head(self, size: int) -> None:
        bytes_max = self._house.config.limits.head_bytes
        if size > bytes_max:
            message = f"The request's head, or its trailer, has more than {bytes_max} bytes."
            self.refusal = self.refusal or refusals.bad_request(message, status=431, closes=True)

    def _without_upgrade(self) -> bytes:
        """The head to be read in its place. Some clients offer HTTP/2; the parser leaves the body to who accepts."""
        incoming, self.coming = self.coming, None
        if incoming is not None:
            self._house.let_go(incoming)  # what is read now is another one
        if incoming is None or incoming.head.method == b"CONNECT":
            self.refusal = refusals.bad_request("This is no proxy for other hosts.", status=405, closes=True)
            return b""
        return plain_head(incoming.head)


def _ambiguous(head: Head) -> Refusal | None:
    """Why others may read it in another way than we do, or not at all; RFC 9112, sections 3.2 and 6.1."""
    coding, hosts = head.header(b"transfer-encoding"), sum(key == b"host" for key, _, _ in head.headers)
    if coding is not None and coding.strip().lower() != b"chunked":
        return refusals.bad_request("Of all transfer codings only chunked is understood.", status=501, closes=True)
    if coding is not None and head.version == "1.0":
        message = "HTTP/1.0 has no transfer codings, so this may be read in two ways."
        return refusals.bad_request(message, closes=True)
    if hosts > 1 or (not hosts and head.version != "1.0"):
        return refusals.bad_request(f"A request has one Host header, and this one has {hosts}.", closes=True)
    return None
