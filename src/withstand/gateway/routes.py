"""The routes that go to an engine. Everything else is the control plane's."""

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
_BY_TARGET = {route.path.encode(): route for route in _ROUTES}


def route_of(method: bytes, target: bytes) -> Route | None:
    """The route that a request line asks for, if an engine is to answer it."""
    if method != b"POST":
        return None
    return _BY_TARGET.get(target) or _BY_TARGET.get(target.partition(b"?")[0])
