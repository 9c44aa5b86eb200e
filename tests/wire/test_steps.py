"""An agent's steps in a stream: told where they came, and no output."""

import msgspec

from withstand.wire.openai_chat import DIALECT
from withstand.wire.reply import Reply


def event(delta: object, **more: object) -> bytes:
    return b"data: " + msgspec.json.encode({"choices": [{"index": 0, "delta": delta}], **more}) + b"\n\n"


def test_steps_stand_between_the_outputs_and_are_none() -> None:
    reply = Reply(keep_text=True)
    reader = DIALECT.stream_reader(reply)
    reader.feed(event({"content": "Let me see. "}), 1)
    reader.feed(event({}, withstand={"step": {"kind": "model", "name": "m", "ms": 2.5, "calls": 1}}), 2)
    reader.feed(event({}, withstand={"step": {"kind": "tool", "name": "t", "ok": False, "ms": 1}}), 3)
    reader.feed(event({"content": "42"}), 4)
    assert reply.chunk_ns == [1, 4]
    assert [(s.kind, s.at_ns, s.events, s.took_ns, s.ok) for s in reply.steps] == [
        ("model", 2, 1, 2_500_000, True),
        ("tool", 3, 1, 1_000_000, False),
    ]
    assert reply.last_words() == "42"
    assert reply.fault is None


def test_somebody_elses_field_of_that_name_says_nothing() -> None:
    for foreign in ("x", 1, [], {"step": 3}, {"steps": [{"kind": None}]}):
        reply = Reply()
        DIALECT.stream_reader(reply).feed(event({"content": "a"}, withstand=foreign), 1)
        assert (reply.steps, reply.fault, len(reply.chunk_ns)) == ([], None, 1)


def test_a_whole_body_tells_of_steps_without_instants() -> None:
    reply = Reply(keep_text=True)
    choices = [{"message": {"content": "42"}, "finish_reason": "stop"}]
    steps = [{"kind": "tool", "name": "t", "ms": 1.0}]
    DIALECT.read_whole(msgspec.json.encode({"choices": choices, "withstand": {"steps": steps}}), reply, 9)
    assert [(s.kind, s.at_ns, s.events) for s in reply.steps] == [("tool", None, 0)]
    assert reply.last_words() == "42"
