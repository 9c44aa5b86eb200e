"""The known ways to spoil streams of tokens by nginx's configuration, each with its cure. Pure.

What was measured with nginx 1.22: buffering delays events where the answer is not chunked, which is what an HTTP/1.0
request gets from many servers; a silent upstream is cut after ``proxy_read_timeout`` without a word to the client.
"""

from collections.abc import Iterator
from typing import Final

from withstand.doctor.finding import Finding, Question
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


def linted(directives: tuple[Directive, ...]) -> list[Finding]:
    """What is wrong or in doubt at each place that passes requests on; one that is sound is told so."""
    places = places_of(directives)
    if not places:
        said = "no proxy_pass is in this file, nor in what it includes: it passes no requests on"
        return [_NOWHERE.not_tried(said, "Name the configuration of the nginx that does.")]
    return [finding for place in places for finding in _sound_or_not(place)]


def _sound_or_not(place: Place) -> list[Finding]:
    ill = [finding for rule in _RULES for finding in rule(place)]
    return ill or [_NOWHERE.ok(f"{place.name} ({place.passes.where}) passes streams as it should")]


def _at(place: Place, name: str) -> str:
    return f"{place.name} ({place.where(name)})"


def _buffering(place: Place) -> Iterator[Finding]:
    if place.word("proxy_buffering", "on") != "off":
        said = f"{_at(place, 'proxy_buffering')} keeps answers in buffers"
        cure = "proxy_buffering off;"
        if place.word("proxy_http_version", "1.0") == "1.0":
            yield _BUFFERING.wrong(f"{said}, and asks by HTTP/1.0: tokens come in heaps", cure)
        else:
            yield _BUFFERING.doubt(f"{said}: what is not chunked comes in heaps, and long answers go to disk", cure)


def _version(place: Place) -> Iterator[Finding]:
    if place.word("proxy_http_version", "1.0") == "1.0":
        said = f"{_at(place, 'proxy_http_version')} asks by HTTP/1.0: each request a connection, answers not chunked"
        yield _VERSION.wrong(said, "proxy_http_version 1.1;")


def _keepalive(place: Place) -> Iterator[Finding]:
    """Told with HTTP/1.0 too: the version alone does not keep them."""
    connection = place.header("connection")
    if connection is None or connection.lower() in {"close", "upgrade", "keep-alive"}:
        sent = "close" if connection is None else connection
        said = f"{_at(place, 'proxy_set_header')} sends `Connection: {sent}` behind, so no connection is kept"
        yield _KEEPALIVE.wrong(said, 'proxy_set_header Connection "";')
    elif connection:
        said = f"{_at(place, 'proxy_set_header')} sends `Connection: {connection}` behind; where that is not empty"
        yield _KEEPALIVE.doubt(f"{said} no connection is kept", 'Have the map give "" to requests without Upgrade.')
    if place.upstream is None or not any(each.name == "keepalive" for each in place.upstream.block or ()):
        where = place.upstream.where if place.upstream else place.passes.where
        said = f"{place.name} ({where}) keeps no connection to what is behind: each request opens one"
        yield _KEEPALIVE.doubt(said, "upstream NAME { server …; keepalive 64; } and proxy_pass http://NAME;")


def _read(place: Place) -> Iterator[Finding]:
    waits_s = place.seconds("proxy_read_timeout", _READ_WRONG_S)
    if waits_s is None or waits_s >= _READ_DOUBT_S:
        return
    said = f"{_at(place, 'proxy_read_timeout')} ends an answer that is silent for {waits_s:g} s"
    cure = "proxy_read_timeout 3600s; the time until a first token, in a queue too, is silence."
    yield (_READ.wrong if waits_s <= _READ_WRONG_S else _READ.doubt)(said, cure)


def _retry(place: Place) -> Iterator[Finding]:
    if "non_idempotent" in place.words("proxy_next_upstream"):
        said = f"{_at(place, 'proxy_next_upstream')} sends a generation again that has been sent: it is made twice"
        yield _RETRY.wrong(said, "proxy_next_upstream off; or error; without non_idempotent.")


def _abort(place: Place) -> Iterator[Finding]:
    if place.word("proxy_ignore_client_abort", "off") == "on":
        said = f"{_at(place, 'proxy_ignore_client_abort')} lets the engine work on for clients that have left"
        yield _ABORT.wrong(said, "proxy_ignore_client_abort off;")


def _body(place: Place) -> Iterator[Finding]:
    largest = place.bytes("client_max_body_size", _BODY_WRONG)
    if largest and largest < _BODY_DOUBT:
        said = f"{_at(place, 'client_max_body_size')} refuses requests above {largest / (1 << 20):g} MiB by 413"
        cure = "client_max_body_size 64m; long contexts and images need it."
        yield (_BODY.wrong if largest <= _BODY_WRONG else _BODY.doubt)(said, cure)


def _gzip(place: Place) -> Iterator[Finding]:
    if place.word("gzip", "off") == "on" and _EVENTS.intersection(place.words("gzip_types")):
        said = f"{_at(place, 'gzip_types')} compresses event streams: events wait for one another"
        yield _GZIP.wrong(said, "gzip off; here, or gzip_types without text/event-stream and *.")


def _chunked(place: Place) -> Iterator[Finding]:
    if place.word("chunked_transfer_encoding", "on") == "off":
        said = f"{_at(place, 'chunked_transfer_encoding')} sends streams without an end that can be told from a loss"
        yield _CHUNKED.wrong(said, "chunked_transfer_encoding on;")


def _cache(place: Place) -> Iterator[Finding]:
    if place.word("proxy_cache", "off") != "off":
        if "POST" in place.words("proxy_cache_methods"):
            said = f"{_at(place, 'proxy_cache_methods')} answers from a cache: what is measured is no engine"
            yield _CACHE.wrong(said, "proxy_cache off;")
        else:
            said = f"{_at(place, 'proxy_cache')} has a cache, which generations have no use for"
            yield _CACHE.doubt(said, "proxy_cache off;")


def _rate(place: Place) -> Iterator[Finding]:
    if place.word("limit_rate", "0") != "0":
        yield _RATE.doubt(f"{_at(place, 'limit_rate')} slows answers down", "limit_rate 0;")


def _errors(place: Place) -> Iterator[Finding]:
    if place.word("proxy_intercept_errors", "off") == "on":
        said = f"{_at(place, 'proxy_intercept_errors')} puts pages of its own in the place of errors from behind"
        yield _ERRORS.doubt(said, "proxy_intercept_errors off; clients read the error's JSON and Retry-After.")


_RULES = (
    *(_buffering, _version, _keepalive, _read, _retry, _abort, _body, _gzip, _chunked, _cache),
    *(_rate, _errors),
)
