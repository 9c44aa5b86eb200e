"""Heads of requests on their way to an engine, and the lines that an answer gets: pure."""

from collections.abc import Iterator

from withstand.gateway.incoming import Incoming

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


def end_to_end(incoming: Incoming, *, without: frozenset[bytes] = frozenset()) -> Iterator[bytes]:
    """The header lines that are meant for who answers: none that belong to the connection or are named by it."""
    dropped = HOP_BY_HOP | without | _named_by_connection(incoming)
    return (b"%b: %b\r\n" % (name, value) for name, value in incoming.headers if name.lower() not in dropped)


def _named_by_connection(incoming: Incoming) -> frozenset[bytes]:
    said = incoming.header(b"connection")
    if said is None or said.lower() in {b"keep-alive", b"close"}:
        return frozenset()
    return frozenset(word.strip().lower() for word in said.split(b","))


def request_head(incoming: Incoming, own: bytes, size: int, dropped: frozenset[bytes]) -> bytes:
    """The whole head but for the path's prefix and the host, which are the engine's and stand in ``own``'s place.

    A client of HTTP/1.0 cannot read chunks, so the engine is asked in HTTP/1.0 as well.
    """
    lines = b"".join(end_to_end(incoming, without=dropped))
    return b"%b%bcontent-length: %d\r\n\r\n" % (own, lines, size)


def request_line(incoming: Incoming, prefix: bytes, host: bytes) -> bytes:
    """``POST /v1/completions HTTP/1.1`` and the host."""
    version = b"1.0" if incoming.version == "1.0" else b"1.1"
    return b"POST %b%b HTTP/%b\r\nhost: %b\r\n" % (prefix, incoming.target, version, host)


def told(engine: bytes, request_id: bytes | None, hop_ns: int, engine_ns: int) -> bytes:
    """Lines that stand after the status line of an engine's answer; durations in ms, as Server-Timing has it."""
    timing = b"\r\nserver-timing: hop;dur=%.3f, engine;dur=%.3f" % (hop_ns / 1e6, engine_ns / 1e6)
    named = b"\r\nx-request-id: %b" % request_id if request_id is not None else b""
    return b"\r\nx-withstand-engine: %b%b%b" % (engine, named, timing)


def final(head: bytes) -> bytes:
    """The answer's own head, without the interim ones (100, 103) that came before it: they were not asked for."""
    while head[9:10] == b"1":
        _, _, head = head.partition(b"\r\n\r\n")
    return head
