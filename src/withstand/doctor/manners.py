"""Small things that a path should get right, or that its user should know."""

from collections.abc import Iterator, Mapping

import msgspec

from withstand.doctor.finding import Fact, Finding, Question
from withstand.doctor.heard import Heard
from withstand.wire.reply import one_line

KEEP_ALIVE = Question("manners.keep_alive", "Connections are kept")
OPEN = Question("manners.key", "A key is asked for")
REQUEST_ID = Question("manners.x-request-id", "x-request-id comes back")
CORS = Question("manners.cors", "Other web pages (CORS)")
GZIP = Question("manners.gzip", "Compressed streams")
CLOCK = Question("manners.clock", "The server's clock")
HINTS = Question("manners.hints", "Hints in the answer's head")

ORIGIN = "https://example.org"
"""The stranger's page that asks."""
_CLOCK_S_MAX = 2.0
_HINTS = ("server-timing", "x-accel-buffering", "cache-control", "via", "server")
_VALUE_MAX = 40


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, and came."""

    plain: Heard
    """An answer behind another, over the same line, asked with an x-request-id and an Origin."""
    request_id: str
    without_key: Heard
    key_given: bool
    loopback: bool
    gzip: Heard
    """Asked with ``Accept-Encoding: gzip``."""
    clock_off_s: float | None
    """The answer's Date - our wall clock; None = it has none."""


def judge_manners(seen: Seen) -> Iterator[Finding]:
    """One finding each."""
    yield _keep_alive(seen.plain)
    yield _key(seen)
    yield _request_id(seen.plain, seen.request_id)
    yield _cors(seen.plain.headers, open_to_all=not seen.key_given)
    yield _gzip(seen.gzip)
    if seen.clock_off_s is not None:
        yield _clock(seen.clock_off_s)
    yield _hints(seen.plain.headers)


def _keep_alive(heard: Heard) -> Finding:
    if not heard.ok:
        return KEEP_ALIVE.not_tried(f"no good answer: {heard.why}")
    if heard.reused and heard.keep_alive:
        return KEEP_ALIVE.ok("the next request goes over the same one")
    cure = "Have the hop keep them: each new one costs a round trip, and with TLS three."
    return KEEP_ALIVE.doubt("a new one for each request", cure)


def _key(seen: Seen) -> Finding:
    status = seen.without_key.http_status
    facts: dict[str, Fact] = {"http_status": status, "key_given": seen.key_given}
    if status in {401, 403}:
        return OPEN.ok(f"without one: HTTP {status}", **facts)
    if not seen.plain.ok:
        return OPEN.not_tried(f"no good answer: {seen.plain.why}")
    if status != 200:
        return OPEN.doubt(f"without one: {seen.without_key.why}", "Have it answer 401 to who has no key.", **facts)
    if seen.key_given:
        cure = "The key that you give is not looked at: have the path ask for it."
        return OPEN.wrong("without one: an answer all the same", cure, **facts)
    if seen.loopback:
        return OPEN.ok("no, anybody on this machine may ask", **facts)
    return OPEN.doubt("no, anybody who reaches it may ask", "Set a key, or let only those reach it who may.", **facts)


def _request_id(heard: Heard, sent: str) -> Finding:
    came = heard.headers.get("x-request-id")
    if not heard.ok and came != sent:
        return REQUEST_ID.not_tried(f"no good answer: {heard.why}")
    if came == sent:
        return REQUEST_ID.ok("as it was sent")
    cure = "Have it come back: by it a slow answer is found in the logs (vLLM: --enable-request-id-headers)."
    return REQUEST_ID.doubt("no" if came is None else "another one", cure)


def _cors(headers: Mapping[str, str], *, open_to_all: bool) -> Finding:
    allowed = headers.get("access-control-allow-origin")
    facts: dict[str, Fact] = {"allowed": allowed}
    if allowed not in {"*", ORIGIN}:
        return CORS.ok("may not read answers", **facts)
    if not open_to_all:
        return CORS.ok(f"allowed: {allowed[:_VALUE_MAX]}; they need the key", **facts)
    cure = "Without a key, any page that you visit can use this model: name the pages that may."
    return CORS.doubt(f"allowed: {allowed[:_VALUE_MAX]}", cure, **facts)


def _gzip(heard: Heard) -> Finding:
    coding = heard.headers.get("content-encoding")
    if not heard.ok:
        return GZIP.not_tried(f"no good answer: {heard.why}")
    if coding in {None, "identity"}:
        return GZIP.ok("not compressed, though it may be")
    together = len(heard.events_ns) - len(set(heard.events_ns))
    if together > len(heard.events_ns) / 2:
        return GZIP.wrong(f"{coding}, and events wait for it", "Leave text/event-stream out of compression.")
    return GZIP.ok(f"{coding}, passed on event by event")


def _clock(off_s: float) -> Finding:
    if abs(off_s) <= _CLOCK_S_MAX:
        return CLOCK.ok("agrees with this one to 2 s", off_s=off_s)
    said = f"{abs(off_s):.0f} s {'ahead of' if off_s > 0 else 'behind'} this one"
    return CLOCK.doubt(said, "Set one of them by NTP, or no log line fits another.", off_s=off_s)


def _hints(headers: Mapping[str, str]) -> Finding:
    there = {name: _shown(headers[name]) for name in _HINTS if name in headers}
    said = "; ".join(f"{name}: {value}" for name, value in there.items()) or "none"
    return HINTS.ok(said, **there)


def _shown(value: str) -> str:
    """What there is room for of a header, cut between words, and said to be."""
    whole = one_line(value, _VALUE_MAX + 1)
    if len(whole) <= _VALUE_MAX:
        return whole
    kept, space, _ = whole[:_VALUE_MAX].rpartition(" ")
    return f"{kept.rstrip(',;')} …" if space else f"{whole[: _VALUE_MAX - 1]}…"
