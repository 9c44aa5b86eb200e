"""What an answer's bytes come to: counts, texts and the verdict."""

import msgspec
import pytest

from withstand.record import Status, TokensFrom
from withstand.request import Message, Request
from withstand.wire import Ask, Reply
from withstand.wire.openai_chat import DIALECT as CHAT
from withstand.wire.openai_completions import DIALECT as COMPLETIONS


def chunk(delta: dict[str, object], finish: str | None = None, **more: object) -> bytes:
    tree = {"object": "chat.completion.chunk", "choices": [{"delta": delta, "finish_reason": finish}], **more}
    return b"data: " + msgspec.json.encode(tree) + b"\n\n"


def usage(completion: int, prompt: int = 3, **details: object) -> bytes:
    tree = {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion, **details}}
    return b"data: " + msgspec.json.encode(tree) + b"\n\n"


DONE = b"data: [DONE]\n\n"


def read(*events: bytes, keep_text: bool = True) -> Reply:
    reply = Reply(keep_text=keep_text)
    reader = CHAT.stream_reader(reply)
    for stamp_ns, event in enumerate(events, start=1):
        reader.feed(event, stamp_ns)
    reader.close(99)
    return reply


def test_a_plain_stream() -> None:
    reply = read(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "a"}),
        chunk({"content": "b"}, "stop"),
        usage(2),
        DONE,
    )
    assert (reply.chunk_ns, reply.answer(), reply.finish_reason) == ([2, 3], "ab", "stop")
    assert reply.counted() == (2, TokensFrom.SERVER)
    assert reply.verdict() == (Status.OK, None)


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning": "hm"},
        {"reasoning_content": "hm"},
        {"refusal": "no"},
        {"content": [{"type": "text", "text": "part"}]},
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"x"'}}]},
    ],
)
def test_every_place_of_output_counts(delta: dict[str, object]) -> None:
    assert read(chunk(delta), DONE).chunk_ns == [1]


@pytest.mark.parametrize("delta", [{}, {"role": "assistant"}, {"content": ""}, {"content": None}, {"tool_calls": []}])
def test_what_carries_no_output_does_not_count(delta: dict[str, object]) -> None:
    assert read(chunk(delta), chunk({"content": "x"}, "stop"), DONE).chunk_ns == [2]


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([chunk({"content": "a"}), b'data: {"error":{"message":"boom"}}\n\n', DONE], Status.STREAM_ERROR),
        ([b'data: {"error":"boom"}\n\n', DONE], Status.STREAM_ERROR),
        ([chunk({"content": "a"}), b"event: error\ndata: boom\n\n", DONE], Status.STREAM_ERROR),
        ([b'data: {"object":"error","message":"boom"}\n\n'], Status.STREAM_ERROR),
        ([chunk({"content": "a"}, "abort"), DONE], Status.STREAM_ERROR),
        ([chunk({"content": "a"})], Status.TRUNCATED),
        ([chunk({"content": "a"}, "stop")], Status.OK),
        ([chunk({"content": "a"}), DONE], Status.OK),
        ([DONE], Status.EMPTY),
        ([], Status.EMPTY),
        ([usage(1), DONE], Status.OK),
        ([b"data: {broken\n\n", DONE], Status.BAD_ANSWER),
        ([b'data: {"choices":7}\n\n', DONE], Status.BAD_ANSWER),
        ([b"data: \xff\xfe\n\n", DONE], Status.BAD_ANSWER),
        ([chunk({"content": "a"}, "stop", error=None), DONE], Status.OK),
        ([chunk({"content": "a"}), usage(10**30), DONE], Status.BAD_ANSWER),
        ([chunk({"content": "a"}), usage(-1), DONE], Status.BAD_ANSWER),
        ([b"data: " + b"[" * 100_000 + b"\n\n", DONE], Status.BAD_ANSWER),
    ],
)
def test_verdicts(events: list[bytes], status: Status) -> None:
    reply = read(*events)
    assert reply.verdict()[0] is status
    assert (reply.fault is None) == (status in {Status.OK, Status.EMPTY, Status.TRUNCATED})


def test_the_error_text_is_the_message() -> None:
    reply = read(b'data: {"error":{"message":"no  room\\nleft","code":500}}\n\n')
    assert reply.fault == (Status.STREAM_ERROR, "no room left")


def test_usage_in_every_chunk_gives_the_tokens_of_each_event() -> None:
    events = [
        chunk({"content": "a"}, usage={"completion_tokens": 1}),
        chunk({"content": "bcd"}, "stop", usage={"completion_tokens": 4}),
    ]
    reply = read(*events, DONE)
    assert reply.chunk_tokens == [1, 3]
    assert read(chunk({"content": "a"}), *events, DONE).chunk_tokens is None


def test_details_of_usage() -> None:
    more = {"prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 1}}
    reply = read(chunk({"content": "a"}), usage(1, **more), DONE)
    assert (reply.prompt_tokens, reply.cached_tokens, reply.reasoning_tokens) == (3, 2, 1)


def test_without_usage_events_are_counted_and_said_to_be() -> None:
    assert read(chunk({"content": "a"}), chunk({"content": "b"}), DONE).counted() == (2, TokensFrom.CHUNKS)


def test_a_server_that_claims_no_tokens_behind_events_has_not_counted() -> None:
    assert read(chunk({"content": "a"}, "stop"), usage(0), DONE).counted() == (1, TokensFrom.CHUNKS)


def test_control_characters_of_a_stranger_are_not_shown() -> None:
    reply = read(b'data: {"error":{"message":"\\u001b[31mred\\u001b]0;x\\u0007 \\u202e end"}}\n\n')
    assert reply.fault is not None
    assert reply.fault[1].isprintable()


def test_a_line_without_end_is_given_up() -> None:
    reply = Reply()
    reader = CHAT.stream_reader(reply)
    for _ in range(2_000):
        reader.feed(b"x" * 16_384, 1)
    reader.close(1)
    assert reply.verdict()[0] is Status.BAD_ANSWER


def test_whole_body() -> None:
    reply = Reply(keep_text=True)
    body = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 1}}
    CHAT.read_whole(msgspec.json.encode(body), reply, 5)
    assert (reply.chunk_ns, reply.answer(), reply.verdict()) == ([5], "hi", (Status.OK, None))


def test_bodies_of_requests() -> None:
    said = Message(role="user", content="hi", extra={"name": msgspec.Raw(b'"bo"')})
    request = Request(
        id=0, session=0, messages=(said,), output_tokens=7, ignore_eos=True, extra_body={"top_k": msgspec.Raw(b"1")}
    )
    ask = Ask(model="m", min_tokens=True, extra_body={"temperature": 0, "stream_options": None})
    history = [Message(role="system", content="be brief")]
    chat = msgspec.json.decode(CHAT.encode(request, history, ask))
    assert chat == {
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi", "name": "bo"}],
        "model": "m",
        "stream": True,
        "stream_options": None,
        "max_completion_tokens": 7,
        "min_tokens": 7,
        "ignore_eos": True,
        "top_k": 1,
        "temperature": 0,
    }
    plain = msgspec.json.decode(COMPLETIONS.encode(request, (), Ask(model="m", stream=False)))
    assert plain == {"prompt": "hi", "model": "m", "stream": False, "max_tokens": 7, "ignore_eos": True, "top_k": 1}


def test_completions_stream() -> None:
    reply = Reply(keep_text=True)
    reader = COMPLETIONS.stream_reader(reply)
    reader.feed(b'data: {"choices":[{"text":"a"}]}\n\ndata: {"choices":[{"text":"","finish_reason":"length"}]}\n\n', 4)
    reader.feed(DONE, 5)
    assert (reply.chunk_ns, reply.answer(), reply.finish_reason, reply.done) == ([4], "a", "length", True)


@pytest.mark.parametrize(
    ("timings", "prefill_ns"),
    [
        ({"prompt_n": 30, "prompt_ms": 93.25, "predicted_ms": 200.0}, 93_250_000),
        ({"prompt_ms": 0}, 0),
        ({"prompt_ms": -1}, None),
        ({"prompt_ms": "93"}, None),
        ({"prompt_ms": 1e300}, None),
        ({}, None),
        ("fast", None),
        ([1], None),
    ],
)
def test_what_llama_cpp_says_of_its_prompt_is_taken_and_no_answer_fails_by_it(
    timings: object, prefill_ns: int | None
) -> None:
    reply = read(chunk({"content": "a"}), chunk({}, "stop", timings=timings), usage(1), DONE)
    assert reply.prefill_ns == prefill_ns
    assert reply.verdict() == (Status.OK, None)
    whole = Reply()
    body = {"choices": [{"text": "a", "finish_reason": "stop"}], "timings": timings}
    COMPLETIONS.read_whole(msgspec.json.encode(body), whole, 5)
    assert whole.prefill_ns == prefill_ns
    assert not read(chunk({"content": "a"}, timings={"prompt_ms": 1})).is_plain("a")


def test_texts_that_another_has_put_there_take_their_room() -> None:
    reply = Reply()
    reply.add_output("a", 1)
    reply.texts.extend(["0123456789"] * 20)
    assert reply.room < 0
    assert Reply(keep_text=True).room > 1 << 40
