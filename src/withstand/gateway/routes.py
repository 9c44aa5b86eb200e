"""The routes that go to an engine. Everything else is the control plane's."""

import re
from collections.abc import Mapping
from enum import Enum

from msgspec import Struct


class Dialect(Enum):
    """Whose form an error must have to be understood."""

    OPENAI = "openai"
    RESPONSES = "responses"
    ANTHROPIC = "anthropic"


class Route(Struct, frozen=True):
    """A path to an engine."""

    path: str
    dialect: Dialect = Dialect.OPENAI
    is_free: bool = False
    """No model runs for it: it takes no tokens and costs no money."""


_ROUTES = (
    Route("/v1/chat/completions"),
    Route("/v1/completions"),
    Route("/v1/responses", Dialect.RESPONSES),
    Route("/v1/messages", Dialect.ANTHROPIC),
    Route("/v1/messages/count_tokens", Dialect.ANTHROPIC, is_free=True),
    Route("/v1/embeddings"),
    Route("/v1/rerank"),
    Route("/rerank"),
    Route("/v1/score"),
    Route("/tokenize", is_free=True),
    Route("/detokenize", is_free=True),
)
ROUTES: Mapping[str, Route] = {route.path: route for route in _ROUTES}
_SCHEME_AND_HOST = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
_BY_TARGET = {route.path.encode(): route for route in _ROUTES}


def route_of(method: bytes, target: bytes) -> Route | None:
    """The route that a request line asks for, if an engine is to answer it."""
    if method != b"POST":
        return None
    return _BY_TARGET.get(target) or _BY_TARGET.get(target.partition(b"?")[0])


def origin_form(target: bytes) -> bytes:
    """The target from its path on, also where it is told as proxies are; RFC 9112, section 3.2.2."""
    found = _SCHEME_AND_HOST.match(target)
    if found is None:
        return target
    path = target[found.end() :]
    return path if path.startswith(b"/") else b"/" + path
