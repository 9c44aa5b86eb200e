"""One call of the model: streamed, timed, and cut when whoever waits for it is cancelled."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any

import httpx
import msgspec
from msgspec import Meta, Struct

from withstand import clock
from withstand.agent.asked import PASSED_ON
from withstand.agent.config import ModelConfig
from withstand.agent.tools.tool import Tool
from withstand.agent.ways.native import Native
from withstand.agent.ways.schema import Schema
from withstand.agent.ways.way import Delta, Message, Say, Way
from withstand.wire.openai_common import error_text, prefill_ns_of
from withstand.wire.sse import EventTooLargeError, SseParser

_ERROR_BYTES = 2000
_ANSWER_BYTES = 1 << 20
_TOKEN_BYTES = 1 << 10
"""Of an answer's stream: the first, and the second for each token that it may have. An event takes about 250."""
_CHARS_PER_TOKEN = 4
_TIMING_CHARS = 300
_TOO_LONG = frozenset({400, 413, 422})
_FULL = re.compile(r"context (size|length|window)|maximum (model|context) length|longer than the model", re.IGNORECASE)
"""How llama.cpp, vLLM, SGLang and others say it."""


class ModelError(Exception):
    """The model's server refuses, breaks off, or is not there. ``status`` is what the client gets.

    ``is_full``: what it was sent is longer than the model can read.
    """

    def __init__(self, status: int, text: str, retry_after: str | None = None, *, is_full: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after = retry_after
        self.is_full = is_full


class Said(Struct, frozen=True, kw_only=True):
    """What a call came to."""

    message: Message
    finish: str | None
    prompt_tokens: int
    output_tokens: int
    told: bool
    """Whether the server counted; else it is an estimate of four characters a token."""
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

    async def ask(
        self, messages: Sequence[Message], tools: Sequence[Tool], say: Say, headers: Mapping[str, str], most: int
    ) -> Said:
        """One call, of at most ``most`` tokens; ``say`` gets the answer's text as it comes.

        Raises:
            ModelError: it came to nothing.
        """
        reading = self._way.reading(say, tools)
        most = min(most, self._config.max_tokens)
        body = self._body(messages, tools, most)
        heard, ttft_ns, began_ns = _Heard(), None, clock.now_ns()
        async with aclosing(self._deltas(body, headers, heard, _ANSWER_BYTES + _TOKEN_BYTES * most)) as deltas:
            async for delta in deltas:
                reading.feed(delta)
                if reading.started and ttft_ns is None:
                    ttft_ns = clock.now_ns() - began_ns
        message = reading.message()
        prompt_tokens, output_tokens = heard.usage.prompt_tokens, heard.usage.completion_tokens
        told = bool(output_tokens)
        return Said(
            message=message,
            finish=heard.finish,
            prompt_tokens=prompt_tokens if told and prompt_tokens is not None else len(body) // _CHARS_PER_TOKEN,
            output_tokens=output_tokens or heard.deltas,
            told=told,
            ttft_ns=ttft_ns,
            took_ns=clock.now_ns() - began_ns,
            server_timing=heard.timing(),
        )

    def _body(self, messages: Sequence[Message], tools: Sequence[Tool], most: int) -> bytes:
        fields = {
            "model": self._config.name,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": self._config.temperature,
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

    async def _deltas(
        self, body: bytes, headers: Mapping[str, str], heard: _Heard, bytes_max: int
    ) -> AsyncGenerator[Delta]:
        try:
            asked = self._client.stream("POST", self._config.url, content=body, headers=self._headers(headers))
            async with asked as answer:
                if answer.status_code != 200:
                    raise await _refusal(answer)
                heard.server_timing = answer.headers.get("server-timing", "")[:_TIMING_CHARS] or None
                async for data in _events(answer, bytes_max):
                    if (delta := _read(data, heard)) is not None:
                        yield delta
        except httpx.TimeoutException:
            raise ModelError(504, "The model's server did not answer in time.") from None
        except httpx.HTTPError as e:
            raise ModelError(502, f"The model's server cannot be reached, or broke off ({type(e).__name__}).") from None
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
        raise ModelError(502, f"The model's server says: {error_text(data)[:300]}")
    heard.take(event)
    choice = next(iter(event.choices or ()), None)
    if choice is None:
        return None
    heard.finish = choice.finish_reason or heard.finish
    heard.deltas += choice.delta is not None and choice.delta != Delta()
    return choice.delta


async def _refusal(answer: httpx.Response) -> ModelError:
    text = b""
    async for piece in answer.aiter_bytes():
        text += piece
        if len(text) > _ERROR_BYTES:
            break
    told = " ".join(error_text(text[:_ERROR_BYTES]).split())
    is_full = answer.status_code in _TOO_LONG and _FULL.search(told) is not None
    status = 400 if is_full else answer.status_code if answer.status_code in {401, 403, 404, 429, 503} else 502
    words = f"The model's server answered {answer.status_code}: {told[:300]}"
    return ModelError(status, words, answer.headers.get("retry-after"), is_full=is_full)
