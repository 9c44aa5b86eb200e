"""A few plain questions to an endpoint before the load: which models it serves, how it tokenizes. Blocking."""

import http.client
import socket
import ssl
from collections.abc import Sequence
from typing import Any

import msgspec

from withstand.errors import AwayError, TargetError
from withstand.load.address import Address, why
from withstand.load.masking import Mask
from withstand.load.owner import Route
from withstand.load.patience import Patience
from withstand.wire.openai_common import error_text
from withstand.wire.reply import one_line

_ANSWER_BYTES_MAX = 64 << 20
_KNOWN_MAX = 200_000
_COUNT_MAX = 1 << 40
_ANSWER_S_MAX = 30.0
_FORMS = (("prompt", "content"), ("prompt",), ("content",))
_TOO_MANY = http.client.TOO_MANY_REQUESTS

_KEY_HEADERS = frozenset({"authorization", "x-api-key", "api-key"})
_IS_IT_RIGHT = "Is the URL right?"


class Asker:
    """One kept connection to the endpoint; asked again where it was closed meanwhile."""

    def __init__(self, route: Route, headers: dict[str, str], mask: Mask) -> None:
        self._route = route
        self._address = route.address
        self._headers = headers
        self._mask = mask
        self._connection: http.client.HTTPConnection | None = None
        self._was_there = False

    @property
    def sends_key(self) -> bool:
        """Whether any."""
        return bool({name.lower() for name in self._headers} & _KEY_HEADERS)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """(HTTP status, body).

        Raises:
            TargetError: no answer at all; an AwayError where that may be so for a moment only.
        """
        data = msgspec.json.encode(body) if body is not None else None
        for attempt in range(2):
            try:
                return self._exchange(method, path, data)
            except ssl.SSLError as e:
                raise TargetError(_tls_sentence(e)) from None
            except (OSError, http.client.HTTPException, ValueError) as e:
                self.close()
                if attempt:
                    told = why(e) if isinstance(e, OSError) else f"not HTTP ({type(e).__name__})"
                    asked = "The server did answer before: look what became of it." if self._was_there else _IS_IT_RIGHT
                    raise AwayError(f"{method} {path} was not answered: {told}. {asked}") from None
        raise AssertionError

    def _exchange(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        headers = {**self._headers, "Host": self._address.host_header}
        self._connection.request(method, path, body=data, headers=headers)
        response = self._connection.getresponse()
        answer = response.read(_ANSWER_BYTES_MAX)
        self._was_there = True
        if response.status != http.client.OK:
            answer = self._mask(answer.decode("utf-8", "replace")).encode()
        return response.status, answer

    def _connect(self) -> http.client.HTTPConnection:
        route = self._route
        raw = socket.socket(route.located.family, socket.SOCK_STREAM)
        raw.settimeout(route.timeouts.connect_s)
        if raw.family != socket.AF_UNIX:  # head and body are two packets: without this the second waits 40 ms
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            raw.connect(route.located.sockaddr)
            wrapped = route.context.wrap_socket(raw, server_hostname=self._address.host) if route.context else raw
        except OSError:
            raw.close()
            raise
        wrapped.settimeout(min(_ANSWER_S_MAX, route.timeouts.read_s))
        connection = http.client.HTTPConnection(self._address.host, self._address.port)
        connection.sock = wrapped
        connection.auto_open = 0
        return connection

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _tls_sentence(e: ssl.SSLError) -> str:
    if isinstance(e, ssl.SSLCertVerificationError):
        return (
            f"The server's certificate is not trusted: {e.verify_message}. "
            "Give its authority's by --cacert FILE, or skip the check by --insecure."
        )
    return f"TLS failed: {e.reason or e}. Does the server speak TLS at that port?"


def served_models(asker: Asker, address: Address) -> list[str]:
    """The ids that ``/v1/models`` lists; empty where the endpoint has no such list.

    Raises:
        TargetError: the endpoint is not there, or the key is wrong.
    """
    status, body = asker.ask("GET", address.url("/v1/models"))
    if status in {401, 403}:
        raise TargetError(key_sentence(f"HTTP {status}: {_short(body)}", sent=asker.sends_key))
    if status != 200:
        return []
    try:
        tree = msgspec.json.decode(body)
        return [str(m["id"]) for m in tree["data"]]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, RecursionError):
        return []


KEY_IN_PLAN = " (in a plan target.api_key_env, of several targets targets.NAME.api_key_env; in a stack's below plan)"
_KEY_BY = f"by --api-key-env, or its file by --api-key-file{KEY_IN_PLAN}."


def no_key_sentence(why: str) -> str:
    """What to do where the key that was promised is not there."""
    return f"There is no API key: {why}. Name the variable that holds it {_KEY_BY}"


def key_sentence(why: str, *, sent: bool, who: str = "The endpoint") -> str:
    """What to do where a key is missing or wrong."""
    if sent:
        return f"{who} refuses the key ({why}). Name the variable that holds the right one {_KEY_BY}"
    return f"{who} wants a key, and none was sent ({why}). Name the variable that holds it {_KEY_BY}"


def served_context(asker: Asker, address: Address, model: str | None) -> int | None:
    """The most tokens that prompt and answer may have together; None = the endpoint does not say.

    vLLM and SGLang list it as ``max_model_len``, gateways as ``context_length``, llama.cpp as ``meta.n_ctx``, or, where
    that is of an older version, in ``/props``.

    Raises:
        TargetError: the endpoint is not there.
    """
    status, body = asker.ask("GET", address.url("/v1/models"))
    try:
        listed = msgspec.json.decode(body, type=_Models).data if status == http.client.OK else ()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    told = next((m for m in listed if m.id == model), None)
    listed_tokens = (told.max_model_len or told.context_length or told.meta.n_ctx) if told else None
    return listed_tokens or _in_props(asker, address)


def _in_props(asker: Asker, address: Address) -> int | None:
    try:
        status, body = asker.ask("GET", address.root_url("/props"))
    except AwayError:  # there are servers that hang up on a page that they do not know
        return None
    try:
        return msgspec.json.decode(body, type=_Props).told.n_ctx if status == http.client.OK else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


class _Settings(msgspec.Struct, frozen=True):
    n_ctx: int | None = None


class _Props(msgspec.Struct, frozen=True, rename={"told": "default_generation_settings"}):
    told: _Settings = _Settings()


class _Meta(msgspec.Struct, frozen=True):
    n_ctx: int | None = None


class _Model(msgspec.Struct):
    id: str
    max_model_len: int | None = None
    context_length: int | None = None
    meta: _Meta = _Meta()


class _Models(msgspec.Struct):
    data: tuple[_Model, ...] = ()


def _short(body: bytes) -> str:
    return one_line(error_text(body), 200).rstrip(".")


class EngineTokenizer:
    """The engine's own ``/tokenize``: exact for what it serves. vLLM, SGLang and llama.cpp have it.

    ``fields`` are where the engine wants the text: ``prompt`` (vLLM, SGLang) or ``content`` (llama.cpp). Behind a
    gateway either may answer, and llama.cpp takes a text in the wrong place for none: so both, where both are
    understood.
    """

    name = "the engine's /tokenize"
    exact = True
    remote = True

    def __init__(self, asker: Asker, path: str, model: str | None, fields: Sequence[str]) -> None:
        self.patience: Patience | None = None
        """None: who is away is not waited for."""
        self._asker = asker
        self._path = path
        self._fields = fields
        self._known: dict[int, int] = {}
        self._more: dict[str, Any] = {"add_special_tokens": False, "add_special": False}
        if model:
            self._more["model"] = model

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without special ones.

        Raises:
            TargetError: the engine does not answer as it must.
        """
        return [self._remembered(text) for text in texts]

    def _remembered(self, text: str) -> int:
        """Every stage asks for the same words again; the hash of a text stands for it."""
        key = hash(text)
        if key not in self._known:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            count = self._count
            self._known[key] = self.patience.ask(lambda: count(text)) if self.patience else count(text)
        return self._known[key]

    def _count(self, text: str) -> int:
        status, answer = self._asker.ask("POST", self._path, dict.fromkeys(self._fields, text) | self._more)
        if status >= http.client.INTERNAL_SERVER_ERROR:
            raise AwayError(f"{self._path} answers HTTP {status}: {_short(answer)}. Look what became of the server.")
        if status != http.client.OK:
            key = "Measure with a key that has no such limit, or choose" if status == _TOO_MANY else "Choose"
            raise TargetError(f"{self._path} answers HTTP {status}: {_short(answer)}. {key} another --tokenizer.")
        try:
            tree = msgspec.json.decode(answer)
            return _plausible(tree["count"]) if "count" in tree else len(tree["tokens"])
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError):
            told = f"{self._path} answers no token list: {_short(answer)}. Choose another --tokenizer."
            raise TargetError(told) from None


def _plausible(count: Any) -> int:
    if not isinstance(count, int) or not 0 <= count <= _COUNT_MAX:
        raise ValueError
    return count


def engine_tokenizer(
    asker: Asker, address: Address, model: str | None, patience: Patience | None = None
) -> EngineTokenizer | None:
    """The engine's tokenizer, if it answers a trial in one of its forms. Later ``patience`` is had with it, if any."""
    for fields in _FORMS:
        tokenizer = EngineTokenizer(asker, address.root_url("/tokenize"), model, fields)
        try:
            if tokenizer.counts(["one two"])[0] > 0:
                tokenizer.patience = patience
                return tokenizer
        except TargetError:
            continue
    return None
