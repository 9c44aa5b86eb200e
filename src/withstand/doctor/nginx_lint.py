"""The known ways to spoil streams of tokens by nginx's configuration, each with its cure. Pure.

What was measured with nginx 1.22: buffering delays events where the answer is not chunked, which is what an HTTP/1.0
request gets from many servers; a silent upstream is cut after ``proxy_read_timeout`` without a word to the client.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from withstand.doctor.finding import Finding, Question, Verdict
from withstand.doctor.nginx_places import Place, places_of
from withstand.doctor.nginx_syntax import Directive

_READ_WRONG_S, _READ_DOUBT_S = 60.0, 600.0
_BODY_WRONG, _BODY_DOUBT = 1 << 20, 8 << 20
_EVENTS: Final = frozenset({"*", "text/event-stream"})

_BUFFERING = Question("nginx.buffering", "buffering")
_VERSION = Question("nginx.http-version", "HTTP behind")
_KEEPALIVE = Question("nginx.keepalive", "kept connections")
_READ = Question("nginx.read-timeout", "how long it waits")
_RETRY = Question("nginx.retry", "sending again")
_ABORT = Question("nginx.abort", "clients that leave")
_BODY = Question("nginx.body-size", "large requests")
_GZIP = Question("nginx.gzip", "compression")
_CHUNKED = Question("nginx.chunked", "chunks")
_CACHE = Question("nginx.cache", "cache")
_RATE = Question("nginx.rate", "slowed answers")
_ERRORS = Question("nginx.errors", "errors")
_NOWHERE = Question("nginx.pass", "passing on")
_NAMED_MAX = 3


class _Ill(Struct, frozen=True):
    """What is wrong or in doubt at a place: what follows it in a sentence."""

    at: str
    question: Question
    verdict: Verdict
    said: str
    cure: str = ""


def linted(directives: tuple[Directive, ...]) -> list[Finding]:
    """What is wrong or in doubt at the places that pass requests on; one that is sound is told so.

    What is alike at several places is told once, and names the first of them.
    """
    places = places_of(directives)
    if not places:
        said = "no proxy_pass is in this file, nor in what it includes: it passes no requests on"
        return [_NOWHERE.not_tried(said, "Name the configuration of the nginx that does.")]
    alike: dict[_Ill, list[str]] = {}
    for place in places:
        for ill in _judged(place):
            alike.setdefault(replace(ill, at=""), []).append(ill.at)
    return [_finding(ill, ats) for ill, ats in alike.items()]


def _finding(ill: _Ill, ats: Sequence[str]) -> Finding:
    first, *others = ats
    more = [f"{len(others) - _NAMED_MAX:,} more"] if len(others) > _NAMED_MAX else []
    also = f"; so in {', '.join([*others[:_NAMED_MAX], *more])}" if others else ""
    return Finding(
        check=ill.question.check,
        title=ill.question.title,
        verdict=ill.verdict,
        said=f"{first} {ill.said}{also}",
        cure=ill.cure,
        facts={"places": len(ats)},
    )


def _judged(place: Place) -> list[_Ill]:
    ill = [found for rule in _RULES for found in rule(place)]
    sound = "passes streams as it should"
    return ill or [_Ill(f"{place.name} ({place.passes.where})", _NOWHERE, Verdict.OK, sound)]


def _buffering(place: Place) -> Iterator[_Ill]:
    if place.word("proxy_buffering", "on") != "off":
        at, said, cure = place.at("proxy_buffering"), "keeps answers in buffers", "proxy_buffering off;"
        if place.word("proxy_http_version", "1.0") == "1.0":
            heaps = f"{said}, and asks by HTTP/1.0: tokens come in heaps"
            yield _Ill(at, _BUFFERING, Verdict.WRONG, heaps, cure)
        else:
            heaps = f"{said}: what is not chunked comes in heaps, and long answers go to disk"
            yield _Ill(at, _BUFFERING, Verdict.DOUBT, heaps, cure)


def _version(place: Place) -> Iterator[_Ill]:
    if place.word("proxy_http_version", "1.0") == "1.0":
        said = "asks by HTTP/1.0: each request a connection, answers not chunked"
        yield _Ill(place.at("proxy_http_version"), _VERSION, Verdict.WRONG, said, "proxy_http_version 1.1;")


def _keepalive(place: Place) -> Iterator[_Ill]:
    """Told with HTTP/1.0 too: the version alone does not keep them."""
    connection, at = place.header("connection"), place.at("proxy_set_header")
    if connection is None or connection.lower() in {"close", "upgrade", "keep-alive"}:
        sent = "close" if connection is None else connection
        said = f"sends `Connection: {sent}` behind, so no connection is kept"
        yield _Ill(at, _KEEPALIVE, Verdict.WRONG, said, 'proxy_set_header Connection "";')
    elif connection:
        said = f"sends `Connection: {connection}` behind; where that is not empty no connection is kept"
        yield _Ill(at, _KEEPALIVE, Verdict.DOUBT, said, 'Have the map give "" to requests without Upgrade.')
    if place.upstream is None or not any(each.name == "keepalive" for each in place.upstream.block or ()):
        where = place.upstream.where if place.upstream else place.passes.where
        said = "keeps no connection to what is behind: each request opens one"
        cure = "upstream NAME { server …; keepalive 64; } and proxy_pass http://NAME;"
        yield _Ill(f"{place.name} ({where})", _KEEPALIVE, Verdict.DOUBT, said, cure)


def _read(place: Place) -> Iterator[_Ill]:
    waits_s = place.seconds("proxy_read_timeout", _READ_WRONG_S)
    if waits_s is None or waits_s >= _READ_DOUBT_S:
        return
    said = f"ends an answer that is silent for {waits_s:g} s"
    cure = "proxy_read_timeout 3600s; the time until a first token, in a queue too, is silence."
    verdict = Verdict.WRONG if waits_s <= _READ_WRONG_S else Verdict.DOUBT
    yield _Ill(place.at("proxy_read_timeout"), _READ, verdict, said, cure)


def _retry(place: Place) -> Iterator[_Ill]:
    if "non_idempotent" in place.words("proxy_next_upstream"):
        said = "sends a generation again that has been sent: it is made twice"
        cure = "proxy_next_upstream off; or error; without non_idempotent."
        yield _Ill(place.at("proxy_next_upstream"), _RETRY, Verdict.WRONG, said, cure)


def _abort(place: Place) -> Iterator[_Ill]:
    if place.word("proxy_ignore_client_abort", "off") == "on":
        said = "lets the engine work on for clients that have left"
        yield _Ill(place.at("proxy_ignore_client_abort"), _ABORT, Verdict.WRONG, said, "proxy_ignore_client_abort off;")


def _body(place: Place) -> Iterator[_Ill]:
    largest = place.bytes("client_max_body_size", _BODY_WRONG)
    if largest and largest < _BODY_DOUBT:
        said = f"refuses requests above {largest / (1 << 20):g} MiB by 413"
        cure = "client_max_body_size 64m; long contexts and images need it."
        verdict = Verdict.WRONG if largest <= _BODY_WRONG else Verdict.DOUBT
        yield _Ill(place.at("client_max_body_size"), _BODY, verdict, said, cure)


def _gzip(place: Place) -> Iterator[_Ill]:
    if place.word("gzip", "off") == "on" and _EVENTS.intersection(place.words("gzip_types")):
        said = "compresses event streams: events wait for one another"
        cure = "gzip off; here, or gzip_types without text/event-stream and *."
        yield _Ill(place.at("gzip_types"), _GZIP, Verdict.WRONG, said, cure)


def _chunked(place: Place) -> Iterator[_Ill]:
    if place.word("chunked_transfer_encoding", "on") == "off":
        said = "sends streams without an end that can be told from a loss"
        cure = "chunked_transfer_encoding on;"
        yield _Ill(place.at("chunked_transfer_encoding"), _CHUNKED, Verdict.WRONG, said, cure)


def _cache(place: Place) -> Iterator[_Ill]:
    if place.word("proxy_cache", "off") != "off":
        cure = "proxy_cache off;"
        if "POST" in place.words("proxy_cache_methods"):
            said = "answers from a cache: what is measured is no engine"
            yield _Ill(place.at("proxy_cache_methods"), _CACHE, Verdict.WRONG, said, cure)
        else:
            said = "has a cache, which generations have no use for"
            yield _Ill(place.at("proxy_cache"), _CACHE, Verdict.DOUBT, said, cure)


def _rate(place: Place) -> Iterator[_Ill]:
    if place.word("limit_rate", "0") != "0":
        yield _Ill(place.at("limit_rate"), _RATE, Verdict.DOUBT, "slows answers down", "limit_rate 0;")


def _errors(place: Place) -> Iterator[_Ill]:
    if place.word("proxy_intercept_errors", "off") == "on":
        said = "puts pages of its own in the place of errors from behind"
        cure = "proxy_intercept_errors off; clients read the error's JSON and Retry-After."
        yield _Ill(place.at("proxy_intercept_errors"), _ERRORS, Verdict.DOUBT, said, cure)


_RULES = (
    *(_buffering, _version, _keepalive, _read, _retry, _abort, _body, _gzip, _chunked, _cache),
    *(_rate, _errors),
)
