"""One call of the model: streamed, timed, and cut when whoever waits for it is cancelled."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Annotated, Any

import httpx
import msgspec
from msgspec import Meta, Struct

from withstand import clock
from withstand.agent.asked import PASSED_ON
from withstand.agent.config import ModelConfig
from withstand.agent.task import Task
from withstand.agent.tools.tool import Tool
from withstand.agent.ways.native import Native
from withstand.agent.ways.schema import Schema
from withstand.agent.ways.way import Delta, Message, Way
from withstand.wire.openai_common import error_text, prefill_ns_of
from withstand.wire.sse import EventTooLargeError, SseParser

_ERROR_BYTES = 2000
_ANSWER_BYTES = 1 << 20
_TOKEN_BYTES = 1 << 10
"""Of an answer's stream: the first, and the second for each token that it may have. An event takes about 250."""
_CHARS_PER_TOKEN = 4
_TIMING_CHARS = 300
_REFUSES = frozenset({400, 413, 422})
_CONTEXT = re.compile(r"context[ _](size|length|window)|model('s)?[ _](context|length|len)\b", re.IGNORECASE)
_ABOVE = re.compile(r"exceed|longer|maximum|too (long|large|many)|at most|limited to", re.IGNORECASE)
"""Both together are how llama.cpp, vLLM, SGLang and others say that a prompt is longer than the context."""
_PASSED = frozenset({401, 403, 404, 429, 503})
_OF_KEYS = frozenset({401, 403})
_CODE = re.compile(r"[a-z0-9_.-]{1,64}", re.IGNORECASE)
_KEY_TIMEOUT_S = 5.0


class ModelError(Exception):
    """The model's server refuses, breaks off, or is not there. ``status`` is what the client gets.

    ``is_full``: what it was sent is longer than the model can read. ``code``: the word that it has for the error.
    """

    def __init__(
        self,
        status: int,
        text: str,
        retry_after: str | None = None,
        *,
        code: str = "model_failed",
        is_full: bool = False,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after = retry_after
        self.code = code
        self.is_full = is_full


class Said(Struct, frozen=True, kw_only=True):
    """What a call came to."""

    message: Message
    finish: str | None
    prompt_tokens: int | None
    output_tokens: int | None
    """Both as the server counted; None = it did not."""
    ttft_ns: int | None
    took_ns: int
    server_timing: str | None
    """What the server told of its own time: its header, and at the end of the answer its prefill, as llama.cpp does."""


Count = Annotated[int, Meta(ge=-(1 << 40), le=1 << 40)]


class _Usage(Struct):
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class _Choice(Struct):
    delta: Delta | None = None
    finish_reason: str | None = None


class _Event(Struct):
    """Of a stream, as far as it is read."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    timings: Any = None


_decoder = msgspec.json.Decoder(_Event)


class _Heard:
    """What a stream says besides its text."""

    def __init__(self) -> None:
        self.finish: str | None = None
        self.usage = _Usage()
        self.done = False
        self.deltas = 0
        self.server_timing: str | None = None
        self.prefill_ns: int | None = None

    def take(self, event: _Event) -> None:
        """The latest counts stand for those before.

        Raises:
            ModelError: one is there without the other.
        """
        self.prefill_ns = prefill_ns_of(event.timings) or self.prefill_ns
        usage = event.usage
        if usage is not None and usage.completion_tokens:
            if min(usage.completion_tokens, usage.prompt_tokens or 0) < 0:
                return  # it does not count; what is estimated is never below 0
            if usage.prompt_tokens is None:
                raise ModelError(502, "The model's server does not speak OpenAI's API: `usage` has no `prompt_tokens`.")
            self.usage = usage

    def tokens(self, asked: bytes) -> tuple[int, int]:
        """Of the prompt and the output, as told; else four characters of ``asked`` a token, and a token a delta.

        Of a call that was cut before anything was heard, none.
        """
        if self.usage.prompt_tokens is not None and self.usage.completion_tokens is not None:
            return self.usage.prompt_tokens, self.usage.completion_tokens
        if not (self.deltas or self.finish or self.done):
            return 0, 0
        return len(asked) // _CHARS_PER_TOKEN, self.deltas

    def timing(self) -> str | None:
        """As a header would have it."""
        prefill = None if self.prefill_ns is None else f"prefill;dur={self.prefill_ns / 1e6:.3f}"
        return ", ".join(filter(None, (self.server_timing, prefill))) or None


class Model:
    """A client of the model's server; its connections are kept."""

    def __init__(self, config: ModelConfig, key: str | None, seconds: float, most: int) -> None:
        self._config = config
        self._key = key
        self._way: Way = (Schema if config.way == "schema" else Native)(config.tool_choice)
        limits = httpx.Limits(max_connections=most, max_keepalive_connections=most)
        timeout = httpx.Timeout(seconds, connect=min(seconds, 5.0))
        self._client = httpx.AsyncClient(trust_env=False, limits=limits, timeout=timeout)

    async def close(self) -> None:
        """All connections."""
        await self._client.aclose()

    async def ask(self, messages: Sequence[Message], tools: Sequence[Tool], task: Task, most: int) -> Said:
        """One call, of at most ``most`` tokens; the task hears the answer's text as it comes.

        Its tokens are spent however it ends.

        Raises:
            ModelError: it came to nothing.
        """
        reading = self._way.reading(task.say, tools)
        most = min(most, self._config.max_tokens)
        body = self._body(messages, tools, task, most)
        heard, ttft_ns, began_ns = _Heard(), None, clock.now_ns()
        try:
            async with aclosing(self._deltas(body, task, heard, _ANSWER_BYTES + _TOKEN_BYTES * most)) as deltas:
                async for delta in deltas:
                    reading.feed(delta)
                    if reading.started and ttft_ns is None:
                        ttft_ns = clock.now_ns() - began_ns
        finally:
            task.budget.spend(*heard.tokens(body))
        return Said(
            message=reading.message(),
            finish=heard.finish,
            prompt_tokens=heard.usage.prompt_tokens,
            output_tokens=heard.usage.completion_tokens,
            ttft_ns=ttft_ns,
            took_ns=clock.now_ns() - began_ns,
            server_timing=heard.timing(),
        )

    async def check_key(self, headers: Mapping[str, str]) -> None:
        """Whether the model's server knows the key that it gets; what is not said of keys is no matter here.

        Raises:
            ModelError: it does not.
        """
        url = self._config.url.removesuffix("/chat/completions") + "/models"
        with suppress(httpx.HTTPError):
            asked = self._client.stream("GET", url, headers=self._headers(headers), timeout=_KEY_TIMEOUT_S)
            async with asked as answer:
                if answer.status_code in _OF_KEYS:
                    raise await self._refusal(answer, sampled=False)

    def _body(self, messages: Sequence[Message], tools: Sequence[Tool], task: Task, most: int) -> bytes:
        """What the client says of sampling stands before what the configuration says."""
        fields = {
            "model": self._config.name,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": self._config.temperature,
            **task.sampling,
            "max_tokens": most,
        }
        return msgspec.json.encode(fields | self._way.body(messages, tools))

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        told = {name: headers[name] for name in PASSED_ON if name in headers}
        if self._key:
            told["authorization"] = f"Bearer {self._key}"
        elif "authorization" in headers:
            told["authorization"] = headers["authorization"]
        return {**told, "content-type": "application/json", "accept-encoding": "identity"}

    async def _refusal(self, answer: httpx.Response, *, sampled: bool) -> ModelError:
        """A key of the agent's own that is refused is no matter of the client, who has sent another one, or none."""
        refusal = await _refusal(answer, sampled=sampled)
        if not self._key or answer.status_code not in _OF_KEYS:
            return refusal
        setting = self._config.key_setting
        return ModelError(502, f"The agent's own key ({setting}) is refused; give it the right one. {refusal}")

    async def _deltas(self, body: bytes, task: Task, heard: _Heard, bytes_max: int) -> AsyncGenerator[Delta]:
        try:
            asked = self._client.stream("POST", self._config.url, content=body, headers=self._headers(task.headers))
            async with asked as answer:
                if answer.status_code != 200:
                    raise await self._refusal(answer, sampled=bool(task.sampling))
                heard.server_timing = answer.headers.get("server-timing", "")[:_TIMING_CHARS] or None
                async for data in _events(answer, bytes_max):
                    if (delta := _read(data, heard)) is not None:
                        yield delta
        except httpx.TimeoutException:
            raise ModelError(504, "The model's server did not answer in time.") from None
        except httpx.ConnectError:
            raise ModelError(502, "The model's server cannot be reached.") from None
        except httpx.HTTPError:
            raise ModelError(502, "The model's server broke off.") from None
        if not heard.done and heard.finish is None:
            raise ModelError(502, "The model's answer broke off.")


async def _events(answer: httpx.Response, bytes_max: int) -> AsyncGenerator[bytes]:
    """The data of each event; whoever sends without an end is cut, so that he does not fill the memory."""
    parser, count = SseParser(), 0
    try:
        async for piece in answer.aiter_bytes():
            count += len(piece)
            if count > bytes_max:
                raise _endless(count)
            for _, data in parser.feed(piece):
                yield data.strip()
    except EventTooLargeError:
        raise _endless(count) from None
    for _, data in parser.close():
        yield data.strip()


def _endless(count: int) -> ModelError:
    return ModelError(502, f"The model's answer does not end: it has more than {count >> 10} KiB.")


def _read(data: bytes, heard: _Heard) -> Delta | None:
    """An event's delta, if it has one."""
    if data == b"[DONE]":
        heard.done = True
        return None
    try:
        event = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        start = data[:100].decode("utf-8", "replace")
        raise ModelError(502, f"The model's server does not speak OpenAI's API: {e}; {start!r}") from None
    if event.error:
        told = error_text(data)
        is_full = _is_full(told) and not heard.deltas
        code = "context_length_exceeded" if is_full else "model_failed"
        raise ModelError(400 if is_full else 502, f"The model's server says: {told[:300]}", code=code, is_full=is_full)
    heard.take(event)
    choice = next(iter(event.choices or ()), None)
    if choice is None:
        return None
    heard.finish = choice.finish_reason or heard.finish
    heard.deltas += choice.delta is not None and choice.delta != Delta()
    return choice.delta


async def _refusal(answer: httpx.Response, *, sampled: bool) -> ModelError:
    """A 400 is the client's where he asks for more than the model can read, or has said how it is to be sampled."""
    body, status = b"", answer.status_code
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > _ERROR_BYTES:
            break
    told = " ".join(error_text(body[:_ERROR_BYTES]).split())
    is_full = status in _REFUSES and _is_full(told)
    is_clients = is_full or (status in _REFUSES and sampled)
    return ModelError(
        400 if is_clients else status if status in _PASSED else 502,
        f"The model's server answered {status}: {told[:300]}",
        answer.headers.get("retry-after"),
        code="context_length_exceeded" if is_full else _code_of(body),
        is_full=is_full,
    )


def _is_full(told: str) -> bool:
    return _CONTEXT.search(told) is not None and _ABOVE.search(told) is not None


def _code_of(body: bytes) -> str:
    """The server's own word for the error."""
    try:
        told = msgspec.json.decode(body)["error"]["code"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError):
        told = None
    return told if isinstance(told, str) and _CODE.fullmatch(told) else "model_failed"
