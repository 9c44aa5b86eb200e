"""Heads of requests on their way to an engine, and the lines that an answer gets: pure."""

import re
from typing import TYPE_CHECKING

from withstand.gateway.incoming import Head
from withstand.gateway.stopwatch import Stopwatch

if TYPE_CHECKING:
    from withstand.gateway.disaggregation.split import Split
    from withstand.gateway.link import Link

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"content-length",
        b"expect",
        b"host",
        b"http2-settings",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"x-request-id",
    )
)
CREDENTIALS = frozenset((b"authorization", b"x-api-key", b"api-key"))
OURS = HOP_BY_HOP | CREDENTIALS
"""Dropped where the key that a client has shown is the gateway's, or where the engine's own goes in its place."""
_FRAMING_LINES = re.compile(rb"\r\n(?:content-length|transfer-encoding):[^\r\n]*", re.IGNORECASE)
_CONNECTION_LINES = re.compile(rb"\r\n(?:connection|keep-alive|proxy-connection):[^\r\n]*", re.IGNORECASE)


def end_to_end(head: Head, dropped: frozenset[bytes] = HOP_BY_HOP) -> bytes:
    """The header lines that are meant for who answers: none that belong to the connection or are named by it."""
    for key, _, said in head.headers:
        if key == b"connection" and said.lower() not in {b"keep-alive", b"close"}:
            dropped = dropped.union(word.strip().lower() for word in said.split(b","))
    return b"".join([b"%b: %b\r\n" % (name, value) for key, name, value in head.headers if key not in dropped])


def plain_head(head: Head) -> bytes:
    """The head without what belongs to the connection, but for the body's length."""
    framing = b"".join(
        b"%b: %b\r\n" % (name, value)
        for key, name, value in head.headers
        if key in {b"transfer-encoding", b"host", b"expect", b"x-request-id"}
    )
    length = b"" if head.length is None else b"content-length: %b\r\n" % head.length
    line = b"%b %b HTTP/%b\r\n" % (head.method, head.target, head.version.encode("ascii"))
    return b"%b%b%b%b\r\n" % (line, framing, length, end_to_end(head))


def parts(head: Head, dropped: frozenset[bytes]) -> tuple[bytes, bytes]:
    """What an engine's head has of the client's: the target, up to the host's name, and the lines, up to the length.

    A client of HTTP/1.0 cannot read chunks, so the engine is asked in HTTP/1.0 as well.
    """
    version = b"1.0" if head.version == "1.0" else b"1.1"
    line = b"%b HTTP/%b\r\nhost: " % (head.target, version)
    return line, b"\r\n%bcontent-length: " % end_to_end(head, dropped)


def told(engine: bytes, request_id: bytes | None, watch: Stopwatch, read_ns: int) -> bytes:
    """Lines that stand after the status line of an engine's answer; durations in ms, as Server-Timing has it."""
    engine_ns = read_ns - (watch.sent_ns or read_ns)
    named = b"" if request_id is None else b"\r\nx-request-id: " + request_id
    return b"\r\nx-withstand-engine: %b%b\r\nserver-timing: hop;dur=%.3f, engine;dur=%.3f" % (
        engine, named, watch.hop_ns / 1e6, engine_ns / 1e6,
    )  # fmt: skip


def asked(engine: bytes) -> bytes:
    """Of an engine that has given no answer."""
    return b"\r\nx-withstand-engine: " + engine


def ours(link: "Link", request_id: bytes, watch: Stopwatch, read_ns: int, split: "Split | None") -> bytes:
    """All lines of an answer that has just begun."""
    lines = told(link.engine.label, None if link.head.is_named else request_id, watch, read_ns)
    if watch.queue_ns is not None:
        cold_ns = 0 if split is None else split.cold_ns(watch.start_ns)
        lines += waited(watch.queue_ns, max(link.engine.cold_ns(watch.start_ns), cold_ns))
    return lines if split is None else lines + split.told(read_ns - (watch.sent_ns or read_ns))


def waited(queue_ns: int, cold_ns: int) -> bytes:
    """What ``told`` says besides of a request that had to wait."""
    cold = b", cold;dur=%.3f" % (cold_ns / 1e6) if cold_ns else b""
    return b", queue;dur=%.3f%b" % (queue_ns / 1e6, cold)


def split(prefill: bytes, prefill_ns: int | None, decode_ns: int) -> bytes:
    """What ``told`` says besides of a request with two legs: the parts of the engines' time, and who did prefill."""
    first = b"" if prefill_ns is None else b", prefill;dur=%.3f" % (prefill_ns / 1e6)
    return b"%b, decode;dur=%.3f\r\nx-withstand-prefill: %b" % (first, decode_ns / 1e6, prefill)


def with_lines(head: bytes, lines: bytes) -> bytes:
    """The head with more lines, of which each begins with its line break."""
    end = head.index(b"\r\n")
    return b"".join((head[:end], lines, head[end:]))


def renewed(head: bytes, lines: bytes, *, hop_by_hop: bool, open_ended: bool) -> bytes:
    """For a client of HTTP/1.1, whose connection is another one than the engine's: nothing of that one is told."""
    if not head.startswith(b"HTTP/1.1"):
        head = b"HTTP/1.1" + head[8:]
    if hop_by_hop:
        head = _CONNECTION_LINES.sub(b"", head)
    if open_ended:
        lines += b"\r\ntransfer-encoding: chunked"
    return with_lines(head, lines)


def whole(head: bytes, lines: bytes, size: int) -> bytes:
    """For an answer whose body is here without its framing."""
    head = _FRAMING_LINES.sub(b"", _CONNECTION_LINES.sub(b"", b"HTTP/1.1" + head[8:]))
    return with_lines(head, b"%b\r\ncontent-length: %d" % (lines, size))


def closing(head: bytes, lines: bytes) -> bytes:
    """For a client that reads no chunks: the body ends with the connection."""
    head = _FRAMING_LINES.sub(b"", _CONNECTION_LINES.sub(b"", head))
    return with_lines(head, lines + b"\r\nconnection: close")


def final(head: bytes) -> bytes:
    """The answer's own head, without the interim ones (100, 103) that came before it: they were not asked for."""
    while head[9:10] == b"1":
        _, _, head = head.partition(b"\r\n\r\n")
    return head
