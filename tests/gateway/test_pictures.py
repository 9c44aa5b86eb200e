"""A picture's bytes are no tokens: what a request with pictures or sounds is held to take."""

import base64
import os
from typing import Any

import msgspec
import pytest

from withstand.gateway.money.estimate import MEDIA_TOKENS, prompt_tokens

PICTURE = base64.b64encode(os.urandom(3 << 20)).decode()
URL = f"data:image/png;base64,{PICTURE}"
PARTS: dict[str, dict[str, Any]] = {
    "chat": {"type": "image_url", "image_url": {"url": URL, "detail": "high"}},
    "responses": {"type": "input_image", "image_url": URL},
    "messages": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
    "audio": {"type": "input_audio", "input_audio": {"data": PICTURE, "format": "wav"}},
    "audio of vLLM": {"type": "audio_url", "audio_url": {"url": f"data:audio/wav;base64,{PICTURE}"}},
    "elsewhere": {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
}


def body(*parts: object) -> bytes:
    return msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": parts}]})


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("count", [1, 2])
def test_each_counts_the_same_whatever_its_size(kind: str, count: int) -> None:
    tokens = prompt_tokens(body({"type": "text", "text": "What is this?"}, *[PARTS[kind]] * count))
    assert count * MEDIA_TOKENS <= tokens < count * MEDIA_TOKENS + 150


def test_text_counts_by_its_bytes() -> None:
    text = {"type": "text", "text": "word " * 10_000}
    assert prompt_tokens(body(text)) == len(body(text)) // 4
    more = {"type": "text", "text": "data:text/plain;base64," + "word " * 10_000}  # only called so
    assert prompt_tokens(body(more, PARTS["chat"])) >= 12_500 + MEDIA_TOKENS


@pytest.mark.parametrize("end", [b'"image_url":"data:', b'"base64" "data"', b'"input_audio":{"data":"', b'"data":'])
def test_a_body_that_breaks_off_is_counted_too(end: bytes) -> None:
    assert prompt_tokens(b'{"input_image":' + end) >= 0


def test_slashes_may_be_escaped() -> None:
    escaped = body(PARTS["chat"]).replace(b"/", b"\\/")
    assert prompt_tokens(escaped) < MEDIA_TOKENS + 150
