"""What prefill and decode are sent: every value that is the client's keeps its bytes."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.gateway.disaggregation import bodies

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OURS = ("kv_transfer_params", "bootstrap_host", "bootstrap_port", "bootstrap_room")
NAMES = st.text() | st.sampled_from(["stream", "max_tokens", "max_completion_tokens", "min_tokens", "stop", *OURS])
INDENTS = st.sampled_from([None, 1])


def written(fields: dict[str, Any], indent: int | None) -> bytes:
    return json.dumps({"model": "m", **fields}, indent=indent).encode() + b"\n" * bool(indent)


def raw(data: bytes) -> dict[str, bytes]:
    return {name: bytes(value) for name, value in msgspec.json.decode(data, type=dict[str, msgspec.Raw]).items()}


@given(st.dictionaries(NAMES, JSON, max_size=6), INDENTS)
def test_decode_has_all_fields_as_they_were_and_ours(fields: dict[str, Any], indent: int | None) -> None:
    body = written(fields, indent)
    handle = b'{ "n": 12345678901234567890123, "x":1.50 }'
    theirs = {name: value for name, value in raw(body).items() if name not in OURS}
    assert raw(bodies.with_handle(body, handle)) == {**theirs, "kv_transfer_params": handle}
    assert raw(bodies.without_handle(body)) == theirs
    if theirs == raw(body):
        assert bodies.with_handle(body, handle).startswith(body.rstrip()[:-1])
        assert bodies.without_handle(body) == body
    room = raw(bodies.with_rooms(body, "h", 1, [2, 3]))
    assert [room[name] for name in OURS[1:]] == [b'["h","h"]', b"[1,1]", b"[2,3]"]


@given(st.dictionaries(NAMES, JSON, max_size=6), INDENTS)
def test_prefill_makes_one_token_of_the_same_prompt(fields: dict[str, Any], indent: int | None) -> None:
    body = written(fields, indent)
    before, after = raw(body), raw(bodies.for_prefill(body))
    assert (after["max_tokens"], after["stream"], after["ignore_eos"]) == (b"1", b"false", b"true")
    assert after.get("max_completion_tokens", b"1") == b"1"
    assert ("max_completion_tokens" in after) == ("max_completion_tokens" in before)
    assert not {"min_tokens", "stop", "stop_token_ids", "stream_options"} & after.keys()
    assert raw(bodies.for_prefill(after_all := bodies.for_prefill(body))) == raw(after_all)
    changed = {*bodies.NOT_FOR_PREFILL, *bodies.ONE_TOKEN, "max_completion_tokens"}
    assert {n: v for n, v in after.items() if n not in changed} == {n: v for n, v in before.items() if n not in changed}


@pytest.mark.parametrize(
    ("answer", "handle"),
    [
        (b'{"kv_transfer_params": {"a": [1,  2]} }', b'{"a": [1,  2]}'),
        (b'{"kv_transfer_params":null}', None),
        (b'{"kv_transfer_params":{}}', None),
        (b'{"choices":[]}', None),
        (b'["kv_transfer_params"]', None),
        (b"\xff", None),
        (b"", None),
    ],
)
def test_a_handle_is_taken_as_it_stands(answer: bytes, handle: bytes | None) -> None:
    assert bodies.handle_of(answer) == handle


@pytest.mark.parametrize(
    ("fields", "rooms"),
    [
        ({}, None),
        ({"n": 1, "prompt": "a"}, None),
        ({"n": 3}, 3),
        ({"n": "3"}, None),
        ({"prompt": ["a"]}, 1),
        ({"prompt": [[1, 2], [3]]}, 2),
        ({"prompt": [1, 2]}, None),
        ({"prompt": []}, None),
        ({"prompt": ["a", "b"], "n": 2}, None),
    ],
)
def test_a_list_of_rooms_is_as_long_as_what_meets_there(fields: dict[str, Any], rooms: int | None) -> None:
    assert bodies.rooms_needed(written(fields, None)) == rooms
