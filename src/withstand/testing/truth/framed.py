"""A body as an HTTP message: the head, and the ways to say where the body ends."""

import zlib
from collections.abc import Callable, Iterator
from itertools import chain

import msgspec

from withstand.testing.truth.score import Mark, Write, united, wrapped

_REASONS = {
    200: "OK",
    307: "Temporary Redirect",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
}


class Head(msgspec.Struct, frozen=True):
    """Status line and headers, but for those that tell the length."""

    status: int
    content_type: str
    headers: tuple[str, ...] = ()
    keep_alive: bool = True
    at_ns: int = 0

    def write(self, *headers: str, version: str = "1.1") -> Write:
        """The head with the framing's headers."""
        lines = [
            f"HTTP/{version} {self.status} {_REASONS[self.status]}",
            f"Content-Type: {self.content_type}",
            *self.headers,
            *headers,
        ]
        if version == "1.1":
            lines.append("Connection: keep-alive" if self.keep_alive else "Connection: close")
        return Write(self.at_ns, "\r\n".join([*lines, "", ""]).encode("latin-1"))


Frame = Callable[[Iterator[Write], Head], Iterator[Write]]


def chunked(body: Iterator[Write], head: Head) -> Iterator[Write]:
    """Every write of the body is a chunk of its own."""
    return _in_chunks(body, head.write("Transfer-Encoding: chunked"))


def chunk_extensions(body: Iterator[Write], head: Head) -> Iterator[Write]:
    """Chunks whose size line says more."""
    return _in_chunks(body, head.write("Transfer-Encoding: chunked"), extension=b';truth="yes; it is"')


def trailers(body: Iterator[Write], head: Head) -> Iterator[Write]:
    """Headers behind the last chunk."""
    opening = head.write("Transfer-Encoding: chunked", "Trailer: X-Truth-Trailer")
    return _in_chunks(body, opening, trailer=b"X-Truth-Trailer: behind the body\r\n")


def gzipped(body: Iterator[Write], head: Head) -> Iterator[Write]:
    """Compressed, and flushed with every write."""
    opening = head.write("Transfer-Encoding: chunked", "Content-Encoding: gzip", "Vary: Accept-Encoding")
    return _in_chunks(_compressed(body), opening)


def with_length(body: Iterator[Write], head: Head) -> Iterator[Write]:
    """The length is told beforehand, the writes keep their times."""
    writes = list(body)
    return chain([head.write(f"Content-Length: {sum(len(write.data) for write in writes)}")], writes)


def at_once(body: Iterator[Write], head: Head) -> Iterator[Write]:
    """Head and body in one write, as small answers come."""
    yield united(with_length(body, head))


def until_close(body: Iterator[Write], head: Head) -> Iterator[Write]:
    """HTTP/1.0: the body ends with the connection."""
    return chain([head.write(version="1.0")], body)


def _in_chunks(body: Iterator[Write], opening: Write, extension: bytes = b"", trailer: bytes = b"") -> Iterator[Write]:
    yield opening
    at_ns = opening.at_ns
    for write in body:
        at_ns = write.at_ns
        yield wrapped(write, b"%x%b\r\n" % (len(write.data), extension), b"\r\n")
    yield Write(at_ns, b"0\r\n%b\r\n" % trailer)


def _compressed(body: Iterator[Write]) -> Iterator[Write]:
    packer, unpacker = zlib.compressobj(wbits=31), zlib.decompressobj(wbits=31)
    at_ns = 0
    for write in body:
        at_ns = write.at_ns
        data = packer.compress(write.data) + packer.flush(zlib.Z_SYNC_FLUSH)
        yield Write(at_ns, data, _marks_in(data, write.marks, unpacker))
    yield Write(at_ns, packer.flush())


def _marks_in(data: bytes, marks: tuple[Mark, ...], unpacker: "zlib._Decompress") -> tuple[Mark, ...]:
    """Where in the compressed data each mark becomes known to a reader who unpacks it byte by byte."""
    ends, known = [], 0
    waiting = list(marks)
    for place in range(len(data)):
        known += len(unpacker.decompress(data[place : place + 1]))
        while waiting and waiting[0].end <= known:
            ends.append(Mark(place + 1, waiting.pop(0).tokens))
    return tuple(ends)
