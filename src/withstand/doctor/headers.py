"""What became of headers on their way to the engine and back, and by which HTTP the engine was asked."""

from collections.abc import Iterator, Mapping

import msgspec

from withstand.doctor.finding import Finding, Question

REQUEST_ID = Question("headers.x-request-id", "x-request-id arrives")
TRACE = Question("headers.traceparent", "traceparent arrives")
KEY = Question("headers.authorization", "The client's key")
UPSTREAM = Question("headers.upstream", "How the engine is asked")


class Came(msgspec.Struct, frozen=True):
    """A request as the echo engine got it."""

    version: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


def judge_headers(sent: Mapping[str, str], came: Came) -> Iterator[Finding]:
    """``sent`` has names in lower case."""
    yield _request_id(sent["x-request-id"], came.headers.get("x-request-id"))
    yield _trace(sent["traceparent"], came.headers.get("traceparent"))
    yield _key(sent.get("authorization"), came.headers.get("authorization"))


def _request_id(sent: str, came: str | None) -> Finding:
    cure = "Have the hop pass it on: by it, lines of its log and of the engine's find each other."
    if came is None:
        return REQUEST_ID.doubt("it is dropped", cure)
    return REQUEST_ID.ok("as it was sent") if came == sent else REQUEST_ID.doubt("the hop puts its own there", cure)


def _trace(sent: str, came: str | None) -> Finding:
    cure = "Have the hop pass it on, so that a trace goes through to the engine."
    if came is None:
        return TRACE.doubt("it is dropped", cure)
    if came == sent:
        return TRACE.ok("as it was sent")
    same = came.split("-")[1:2] == sent.split("-")[1:2]
    return TRACE.ok("the same trace, with a span of the hop's") if same else TRACE.doubt("another trace", cure)


def _key(sent: str | None, came: str | None) -> Finding:
    if sent is None:
        return KEY.ok("none was sent; the hop adds its own" if came else "none was sent, none arrives")
    if came is None:
        return KEY.ok("it stays at the hop")
    return KEY.ok("it goes on to the engine" if came == sent else "the hop puts its own in its place")


def judge_upstream(version: str, *, reused: bool) -> Finding:
    """How the hop speaks to the engine; ``reused``: a connection served a second request."""
    if version == "1.0":
        said = "by HTTP/1.0, a new connection for each request"
        cure = "Have it speak HTTP/1.1 with kept connections (nginx: proxy_http_version 1.1; Connection '')."
        return UPSTREAM.doubt(said, cure, version=version, reused=reused)
    kept = "over kept connections" if reused else "over a new connection for each request"
    if reused:
        return UPSTREAM.ok(f"by HTTP/{version}, {kept}", version=version, reused=reused)
    cure = "Have the hop keep its connections: each new one costs a round trip, and with TLS three."
    return UPSTREAM.doubt(f"by HTTP/{version}, {kept}", cure, version=version, reused=reused)
