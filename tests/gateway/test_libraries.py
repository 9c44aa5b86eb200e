"""Clients that people use, unchanged, through a real gateway; LangChain too by ``make test-clients``."""

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from engines import DONE, END, STREAM_HEAD, Behave, Engine, Seen, Talk, chunk, whole
from gateways import Gateway, get, model

Engines = Callable[[Behave], Engine]
WORDS = ("Hello", " there", "!")


def sse(told: dict[str, Any], kind: str | None = None) -> bytes:
    head = b"" if kind is None else b"event: %b\n" % kind.encode()
    return chunk(head + b"data: " + msgspec.json.encode(told) + b"\n\n")


def openai_answers(talk: Talk, seen: Seen) -> None:
    asked = seen.json
    usage = {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}
    common = {"id": "c", "created": 1, "model": asked["model"]}
    if b"/embeddings" in seen.head.split(b"\r\n")[0]:
        if asked["input"] == "too long":
            talk.say(whole(b'{"error":{"message":"too long","type":"invalid_request_error"}}', b"400 Bad Request"))
            return
        data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
        talk.say(whole(msgspec.json.encode({"object": "list", "data": data, "model": "m", "usage": usage})))
        return
    call = {"id": "t", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":2}'}}
    message: dict[str, Any] = {"role": "assistant", "content": "".join(WORDS)}
    if asked.get("tools"):
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    if not asked.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        talk.say(
            whole(msgspec.json.encode({**common, "object": "chat.completion", "choices": [choice], "usage": usage}))
        )
        return
    common["object"] = "chat.completion.chunk"
    pieces = [{"index": 0, "delta": {"role": "assistant", "content": word}, "finish_reason": None} for word in WORDS]
    pieces.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    talk.say(STREAM_HEAD, *[sse({**common, "choices": [piece]}) for piece in pieces])
    talk.say(sse({**common, "choices": [], "usage": usage}), chunk(DONE) + END)


def anthropic_answers(talk: Talk, seen: Seen) -> None:
    message = {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": seen.json["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 3},
    }
    if not seen.json.get("stream"):
        text = [{"type": "text", "text": "".join(WORDS)}]
        talk.say(whole(msgspec.json.encode({**message, "content": text, "stop_reason": "end_turn"})))
        return
    block = {"type": "text", "text": ""}
    talk.say(STREAM_HEAD, sse({"type": "message_start", "message": message}, "message_start"))
    talk.say(sse({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start"))
    for word in WORDS:
        delta = {"type": "text_delta", "text": word}
        talk.say(sse({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta"))
    talk.say(sse({"type": "content_block_stop", "index": 0}, "content_block_stop"))
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
    talk.say(sse(end, "message_delta"), sse({"type": "message_stop"}, "message_stop"), END)


@pytest.fixture
def served(engine: Engines, gateway: Callable[[str], Gateway]) -> Gateway:
    one = engine(lambda talk, seen: (anthropic_answers if b"/messages" in seen.head else openai_answers)(talk, seen))
    return gateway(model(one.url))


ASKED: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_openais_client(served: Gateway) -> None:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"http://127.0.0.1:{served.port}/v1", api_key="k", max_retries=0) as client:
        assert client.chat.completions.create(**ASKED).choices[0].message.content == "Hello there!"
        told = list(client.chat.completions.create(**ASKED, stream=True))
        assert "".join(each.choices[0].delta.content or "" for each in told if each.choices) == "Hello there!"
        assert told[-1].usage.total_tokens == 6
        raw = client.chat.completions.with_raw_response.create(**ASKED)
        assert raw.headers["x-request-id"].startswith("gw-")
        assert raw.parse().usage.prompt_tokens == 3
        assert [each.id for each in client.models.list()] == ["m"]
        embedded = client.embeddings.create(model="m", input="a", encoding_format="float")
        assert embedded.data[0].embedding == [0.5, 0.25]
        with pytest.raises(openai.BadRequestError, match="too long"):
            client.embeddings.create(model="m", input="too long")
        with pytest.raises(openai.NotFoundError) as e:
            client.chat.completions.create(**{**ASKED, "model": "other"})
        assert e.value.code == "model_not_found"
        with client.chat.completions.create(**ASKED, stream=True) as stream:
            next(iter(stream))  # and leave


def test_openais_client_in_an_event_loop(served: Gateway) -> None:
    openai = pytest.importorskip("openai")

    async def talk() -> list[str]:
        url = f"http://127.0.0.1:{served.port}/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as client:
            whole = [client.chat.completions.create(**ASKED) for _ in range(10)]
            said = [each.choices[0].message.content for each in await asyncio.gather(*whole)]
            stream = await client.chat.completions.create(**ASKED, stream=True)
            return [*said, "".join([each.choices[0].delta.content or "" async for each in stream if each.choices])]

    assert asyncio.run(talk()) == ["Hello there!"] * 11


def test_anthropics_client(served: Gateway) -> None:
    anthropic = pytest.importorskip("anthropic")
    with anthropic.Anthropic(base_url=f"http://127.0.0.1:{served.port}", api_key="k", max_retries=0) as client:
        asked = {**ASKED, "max_tokens": 9}
        assert client.messages.create(**asked).content[0].text == "Hello there!"
        with client.messages.stream(**asked) as stream:
            assert "".join(stream.text_stream) == "Hello there!"
            assert stream.get_final_message().stop_reason == "end_turn"
        with pytest.raises(anthropic.NotFoundError) as e:
            client.messages.create(**{**asked, "model": "other"})
        assert e.value.body["type"] == "error"


def test_langchain(served: Gateway) -> None:
    langchain = pytest.importorskip("langchain_openai", reason="`make test-clients` has it")
    chat = langchain.ChatOpenAI(model="m", base_url=f"http://127.0.0.1:{served.port}/v1", api_key="k", max_retries=0)
    assert chat.invoke("hi").content == "Hello there!"
    assert "".join(each.content for each in chat.stream("hi")) == "Hello there!"

    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    assert chat.bind_tools([add]).invoke("1 + 2").tool_calls[0]["args"] == {"a": 1, "b": 2}


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
@pytest.mark.parametrize("more", [[], ["--http1.0"], ["-H", "Expect: 100-continue"], ["--compressed", "-N"]])
def test_curl(served: Gateway, more: list[str]) -> None:
    url = f"http://127.0.0.1:{served.port}/v1/chat/completions"
    told = msgspec.json.encode({**ASKED, "stream": "--http1.0" not in more}).decode()
    command = [
        "curl",
        "-sS",
        "--fail",
        "--max-time",
        "10",
        *more,
        url,
        "-H",
        "content-type: application/json",
        "-d",
        told,
    ]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert all(word in said for word in WORDS) or "Hello there!" in said


def test_polling_as_open_webui_does(served: Gateway) -> None:
    def poll(wrong: list[int]) -> None:
        for _ in range(10):
            client = served.client()
            said = [client.send(get(path)).answer().status for path in ("/v1/models", "/health", "/v1/models/m")]
            wrong += [status for status in said if status != 200]
            client.close()

    wrong: list[int] = []
    pollers = [threading.Thread(target=poll, args=(wrong,)) for _ in range(5)]
    for poller in pollers:
        poller.start()
    for poller in pollers:
        poller.join(30)
    assert wrong == []
