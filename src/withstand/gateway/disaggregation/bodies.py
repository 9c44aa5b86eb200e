"""What prefill and decode engines are sent in place of a client's body: pure.

Values that are not the gateway's pass as the bytes that they are, so that no number changes on the way. What only a
gateway may say (where the KV cache is) is never taken from a client: an engine that believes it reads others' memory.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec
from msgspec import Raw, Struct

KV = "kv_transfer_params"
_BOOTSTRAP = ("bootstrap_host", "bootstrap_port", "bootstrap_room")
_OURS = (KV, *_BOOTSTRAP)

ONE_TOKEN: Mapping[str, bytes] = {
    "stream": b"false",
    "max_tokens": b"1",
    "ignore_eos": b"true",
    KV: b'{"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,'
    b'"remote_host":null,"remote_port":null}',
}
"""Of vLLM's prefill. It must end by its length: a connector may give no handle for what a stop has ended."""
NOT_FOR_PREFILL = ("stream_options", "min_tokens", "min_completion_tokens", "stop", "stop_token_ids")


class Whole(Enum):
    """Why a request is not split, or no longer; the values are labels."""

    ROUTE = "route"
    SHORT = "short"
    SAMPLES = "samples"
    """Several answers of one prompt: vLLM reads and frees the remote blocks for the first of them alone."""
    BATCH = "batch"
    """Several prompts in one request: there is one handle for all of them."""
    PROMPT_LOGPROBS = "prompt_logprobs"
    """They are of the prompt's own pass through the model, which decode would not make."""
    NO_PREFILL = "no_prefill"
    """No prefill engine may be asked, or none could be reached."""
    STATUS = "status"
    BROKE = "broke"
    TIMEOUT = "timeout"
    NO_HANDLE = "no_handle"


class _Shape(Struct):
    n: Raw = Raw(b"1")
    use_beam_search: Raw = Raw(b"false")
    prompt: Raw = Raw(b"null")
    prompt_logprobs: Raw = Raw(b"null")
    echo: Raw = Raw(b"false")


class _Prefilled(Struct):
    kv_transfer_params: Raw = Raw(b"null")


_shape_of = msgspec.json.Decoder(_Shape).decode
_prefilled = msgspec.json.Decoder(_Prefilled).decode
_fields_of = msgspec.json.Decoder(dict[str, Raw]).decode
_items_of = msgspec.json.Decoder(list[Raw]).decode


def why_whole(body: bytes) -> Whole | None:
    """Why vLLM cannot split this one; None = it can.

    Sources: vllm-project/vllm#38900 and #43509 (n), #54707 (batches).
    """
    shape = _shape_of(body)
    if _number(shape.n) > 1 or bytes(shape.use_beam_search) == b"true":
        return Whole.SAMPLES
    if (prompts := _prompts(shape.prompt)) is not None and prompts > 1:
        return Whole.BATCH
    if bytes(shape.prompt_logprobs) != b"null" or bytes(shape.echo) == b"true":
        return Whole.PROMPT_LOGPROBS
    return None


def rooms_needed(body: bytes) -> int | None:
    """How many rooms an SGLang request needs in a list; None = one for all, which its engines count up themselves.

    They repeat a list for each sample, so several samples of several prompts would meet in one room: there the one
    that is counted up is right.
    """
    shape = _shape_of(body)
    samples, prompts = _number(shape.n), _prompts(shape.prompt)
    if samples > 1:
        return None if prompts is not None else samples
    return prompts


def for_prefill(body: bytes) -> bytes:
    """Of a client's body: one token, and the KV cache kept for whoever fetches it.

    Raises:
        ValueError: the body's field names are no UTF-8.
    """
    fields = _fields_of(body)
    for name in NOT_FOR_PREFILL:
        fields.pop(name, None)
    for name, value in ONE_TOKEN.items():
        fields[name] = Raw(value)
    if "max_completion_tokens" in fields:
        fields["max_completion_tokens"] = Raw(b"1")
    return msgspec.json.encode(fields)


def handle_of(answer: bytes) -> bytes | None:
    """Where the KV cache waits, as prefill's answer says it: bytes that nobody but decode need understand."""
    try:
        handle = bytes(_prefilled(answer).kv_transfer_params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return handle if handle not in {b"null", b"{}"} else None


def with_handle(body: bytes, handle: bytes) -> bytes:
    """The client's body for decode.

    Raises:
        ValueError: the body's field names are no UTF-8.
    """
    return _with(body, {KV: handle})


def with_rooms(body: bytes, host: str, port: int, rooms: int | Sequence[int]) -> bytes:
    """The client's body for both of SGLang's engines; lists are as long as the request has prompts or samples.

    Raises:
        ValueError: the body's field names are no UTF-8.
    """
    told: Sequence[object] = (host, port, rooms)
    if not isinstance(rooms, int):
        told = ([host] * len(rooms), [port] * len(rooms), rooms)
    return _with(body, {name: msgspec.json.encode(value) for name, value in zip(_BOOTSTRAP, told, strict=True)})


def without_handle(body: bytes) -> bytes:
    """The client's body for an engine that does all of it.

    Raises:
        ValueError: the body's field names are no UTF-8.
    """
    return _with(body, {})


def _with(body: bytes, own: Mapping[str, bytes]) -> bytes:
    """Our fields stand at the end; the bytes before them are the client's, unless it has named one of ours."""
    fields = _fields_of(body)
    if fields.keys().isdisjoint(_OURS):
        told = b"".join(b',"%b":%b' % (name.encode(), value) for name, value in own.items())
        return b"%b%b}" % (body.rstrip(b" \t\r\n")[:-1], told) if own else body
    kept = {name: value for name, value in fields.items() if name not in _OURS}
    return msgspec.json.encode({**kept, **{name: Raw(value) for name, value in own.items()}})


def _number(value: Raw) -> int:
    """What is no number is the engine's to refuse."""
    said = bytes(value)
    return int(said) if said.isdigit() and len(said) < 10 else 1


def _prompts(prompt: Raw) -> int | None:
    """How many, where the field is a list of them; a list of token ids is one."""
    if not bytes(prompt).startswith(b"["):
        return None
    items = _items_of(prompt)
    return len(items) if items and bytes(items[0])[:1] in {b'"', b"["} else None
