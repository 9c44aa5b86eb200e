"""HTTP/1.1 without sockets: the head that we send, and an answer read by httptools as its bytes come.

Knows framing (chunks, lengths, the close of the connection, 1xx answers, gzip), knows nothing of what is inside.
"""

import zlib
from collections.abc import Callable, Mapping

import httptools

_REDIRECTS = {301, 302, 303, 307, 308}
_HEADER_BYTES_MAX = 256 << 10
_INFLATED_BYTES_MAX = 16 << 20
_ANY_WRAPPING = 47
_TIMING = "server-timing"


def request_head(method: str, url: str, host: str, headers: Mapping[str, str]) -> bytes:
    """Everything before the length of the body; ``with_body`` completes it."""
    lines = [f"{method} {url} HTTP/1.1", f"Host: {host}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join(lines).encode("latin-1")


def with_body(head: bytes, body: bytes) -> bytes:
    """The whole request."""
    return b"%b\r\nContent-Length: %d\r\n\r\n%b" % (head, len(body), body)


class HttpError(Exception):
    """The bytes are no HTTP, or a coding that we did not ask for."""


class Answer:
    """One answer as it comes. ``on_body(bytes)`` gets the decoded body; create a new one for each request."""

    __slots__ = (
        "_close_delimited",
        "_header_bytes",
        "_inflate",
        "_on_body",
        "_on_head",
        "_parser",
        "begun",
        "between_chunks",
        "chunks",
        "complete",
        "content_type",
        "headers",
        "keep_alive",
        "status",
    )

    def __init__(self, on_head: Callable[[], None], on_body: Callable[[bytes], None]) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.content_type = ""
        self.begun = 0
        """Messages: one, and one more for each interim answer."""
        self.complete = False
        self.keep_alive = False
        self._on_head = on_head
        self._on_body = on_body
        self._inflate: zlib._Decompress | None = None
        self.between_chunks = False
        """Whether the next byte is the first of a chunk's size, of a body that is not coded."""
        self.chunks = 0
        self._close_delimited = False
        self._header_bytes = 0
        self._parser = httptools.HttpResponseParser(self)

    def release(self) -> None:
        """Let go of the parser and the callbacks: with them this would be a cycle, and garbage costs pauses."""
        del self._parser, self._on_head, self._on_body

    def feed(self, data: bytes) -> None:
        """The next bytes.

        Raises:
            HttpError: they are no HTTP.
        """
        self.between_chunks = False
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, zlib.error) as e:
            if self.complete:  # what comes behind the answer is not ours; the connection is not used again
                self.keep_alive = False
                return
            cause = e.__context__ if isinstance(e.__context__, HttpError) else e
            raise HttpError(str(cause) or type(cause).__name__) from None
        except httptools.HttpParserUpgrade:
            raise HttpError("the server switched to another protocol") from None
        if self.between_chunks and data[-1:] != b"\n":
            self.between_chunks = False

    @property
    def in_chunk(self) -> bool:
        """A chunk has begun, if only by its size, and has not ended."""
        return bool(self.chunks) and self._inflate is None and not (self.between_chunks or self.complete)

    def closed(self) -> bool:
        """The connection has ended; whether that was this answer's proper end."""
        if self.status is not None and not self.complete and self._close_delimited:
            self.complete = True
        return self.complete

    # Called by httptools.

    def on_message_begin(self) -> None:
        """The first byte of an answer; of an interim one too, and of one that nobody has asked for."""
        if self.complete:
            self.keep_alive = False
        else:
            self.begun += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, or one trailer."""
        if self.complete:
            return
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > _HEADER_BYTES_MAX:
            raise HttpError("the headers have more than 256 KiB")
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        if key == _TIMING and key in self.headers:  # each hop may add a line of its own
            text = f"{self.headers[key]}, {text}"
        self.headers[key] = text

    def on_headers_complete(self) -> None:
        """The head has ended; an interim 1xx answer is forgotten."""
        if self.complete:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self.headers.clear()
            return
        self.status = status
        self.content_type = self.headers.get("content-type", "").lower()
        chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        self._close_delimited = not chunked and "content-length" not in self.headers
        self._set_coding(self.headers.get("content-encoding", "identity").lower())
        self._on_head()

    def _set_coding(self, coding: str) -> None:
        if coding in {"gzip", "x-gzip", "deflate"}:
            self._inflate = zlib.decompressobj(wbits=_ANY_WRAPPING)
        elif coding not in {"", "identity"}:
            raise HttpError(f"the body is coded as {coding!r}, which was not asked for")

    def on_body(self, data: bytes) -> None:
        """A piece of the body, out of its chunk."""
        if not self.complete:
            self._on_body(self._inflated(data) if self._inflate else data)

    def _inflated(self, data: bytes) -> bytes:
        assert self._inflate is not None
        plain = b""
        while data:
            if self._inflate.eof:  # gzip may have several members
                self._inflate = zlib.decompressobj(wbits=_ANY_WRAPPING)
            plain += self._inflate.decompress(data, _INFLATED_BYTES_MAX)
            if self._inflate.unconsumed_tail or len(plain) > _INFLATED_BYTES_MAX:
                raise HttpError("the body is compressed beyond all measure")
            data = self._inflate.unused_data
        return plain

    def on_chunk_header(self) -> None:
        """A chunk begins."""
        self.chunks += 1
        self.between_chunks = False

    def on_chunk_complete(self) -> None:
        """A chunk has ended: if nothing comes behind it, the next bytes are the next chunk's size."""
        self.between_chunks = self._inflate is None and self.status is not None

    def on_message_complete(self) -> None:
        """The last byte; of an interim answer too."""
        if self.status is not None and not self.complete:
            self.complete = True
            self.keep_alive = self._parser.should_keep_alive()

    def is_redirect(self) -> bool:
        """Whether the server sends us elsewhere."""
        return self.status in _REDIRECTS
