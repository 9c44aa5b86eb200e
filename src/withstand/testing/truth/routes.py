"""What the server says beside completions, and which requests it refuses. Pure: a request in, an answer out."""

import msgspec

from withstand.testing.truth.asked import Body, texts, token_ids
from withstand.testing.truth.config import MODEL, Config
from withstand.testing.truth.faults import error_body
from withstand.testing.truth.incoming import HttpRequest
from withstand.testing.truth.style import Refusal
from withstand.testing.truth.voice import CREATED_S

_JSON = "application/json"
_CHAT = ("/chat/completions", "/chat/moved")
_TEXT = ("/completions", "/moved")


def completion_kind(request: HttpRequest) -> str | None:
    """``chat`` or ``text``; None = it is no completion that is asked for."""
    if request.method != "POST":
        return None
    if request.path.endswith(_CHAT):
        return "chat"
    return "text" if request.path.endswith(_TEXT) else None


def is_moved(request: HttpRequest) -> bool:
    """The path that ``redirect`` points to."""
    return request.path.endswith("/moved")


def refusal(status: int, message: str, kind: str) -> Refusal:
    """A JSON error."""
    return Refusal(status, _JSON, error_body(message, kind, status))


def refused_by_key(request: HttpRequest, config: Config) -> Refusal | None:
    """401 for whoever does not have the key; None = let it pass."""
    if config.api_key is None or request.path == "/health":
        return None
    if request.headers.get("authorization") == f"Bearer {config.api_key}":
        return None
    return refusal(401, "Unauthorized: wrong or missing API key", "AuthenticationError")


def refused_by_model(body: Body, config: Config) -> Refusal | None:
    """404 for a model that is not served; what stands behind its name's colon is let be."""
    if config.models is None or (body.model or "").partition(":")[0] in config.models:
        return None
    return refusal(404, f"The model `{body.model}` does not exist.", "NotFoundError")


def answer(request: HttpRequest, config: Config) -> Refusal:
    """Everything that is no completion."""
    match request.method, request.path:
        case "GET", "/health":
            return Refusal(200, _JSON, b'{"status":"ok"}')
        case "GET", "/v1/models":
            return Refusal(200, _JSON, models(config))
        case "POST", "/tokenize" | "/v1/tokenize":
            return tokenize(request.body)
    return refusal(404, f"Nothing answers {request.method} {request.path}", "NotFoundError")


def models(config: Config) -> bytes:
    """The list of models."""
    names = config.models or (MODEL,)
    told = {} if config.max_model_len is None else {"max_model_len": config.max_model_len}
    data = [{"id": name, "object": "model", "created": CREATED_S, "owned_by": "withstand"} | told for name in names]
    return msgspec.json.encode({"object": "list", "data": data})


class _Text(msgspec.Struct):
    """vLLM says ``prompt`` or ``messages``, llama.cpp ``content``."""

    prompt: str | None = None
    content: str | None = None
    messages: list[dict[str, object]] | None = None


def tokenize(body: bytes) -> Refusal:
    """A number for each run of characters other than ASCII white space."""
    try:
        text = msgspec.json.decode(body, type=_Text)
    except (msgspec.DecodeError, UnicodeDecodeError) as e:
        return refusal(400, str(e), "BadRequestError")
    ids = [
        i
        for part in texts([text.content if text.prompt is None else text.prompt, text.messages])
        for i in token_ids(part)
    ]
    return Refusal(200, _JSON, msgspec.json.encode({"count": len(ids), "max_model_len": 1 << 20, "tokens": ids}))
