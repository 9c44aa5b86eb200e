"""One row of facts for one request.

Integers only, nanoseconds since the run's epoch; None = not known, never 0; nothing that can be derived.
A request that failed, or was never sent, is a record too.
"""

from enum import StrEnum

import msgspec

# Schema history
# 1  2026-11  the first
# 2  2026-11  server_timing, steps, correct
# 3  2026-11  prefill_ns
SCHEMA = 3


class Status(StrEnum):
    """How a request ended: a closed set. Only ``ok`` is a success."""

    OK = "ok"
    HTTP_ERROR = "http_error"  # a status of 400 or above, but 429
    LIMITED = "limited"  # 429: a limiter spoke, not the engine
    STREAM_ERROR = "stream_error"  # HTTP 200, then an error inside the stream
    BAD_ANSWER = "bad_answer"  # HTTP 200, but not the dialect: HTML, broken JSON, a redirect
    EMPTY = "empty"  # HTTP 200, well formed, without a single token
    TRUNCATED = "truncated"  # the stream or body ended before its end was announced
    TIMEOUT = "timeout"
    REFUSED = "refused"  # no connection
    TLS_ERROR = "tls_error"
    RESET = "reset"  # the connection broke before an answer began
    CANCELLED = "cancelled"  # we stopped it: second Ctrl-C, end of the drain
    LOST = "lost"  # our own worker died while it was due or on its way
    NOT_SENT = "not_sent"  # planned, but the stage ended or we could not


OUR_DOING = frozenset({Status.CANCELLED, Status.LOST, Status.NOT_SENT})
"""They say nothing of the server."""


class TokensFrom(StrEnum):
    """Who counted the output tokens. The length that was asked for is no count, so it is not among them."""

    SERVER = "server"
    TOKENIZER = "tokenizer"
    CHUNKS = "chunks"


class Clock(StrEnum):
    """Who stamped the arrivals."""

    KERNEL = "kernel"
    USER = "user"


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent told of one call of its model or of a tool; durations are of its clock. None = it did not tell."""

    kind: str
    """``model``, ``tool``, or ``limit`` where one ended the task."""
    name: str = ""
    ok: bool = True
    at_ns: int | None = None
    """When its event was here; None without a stream."""
    events: int = 0
    """Events with output that had come before."""
    took_ns: int | None = None
    ttft_ns: int | None = None
    server_timing: str | None = None
    """Of the model's call: what its server told the agent of its own time. Older records have none."""
    prompt_tokens: int | None = None
    output_tokens: int | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The facts of one request. Times are ns since the run's epoch.

    ``chunk_ns`` holds the arrival of every event that carried output (content, reasoning or tool-call text);
    events that came in one read share one stamp. ``chunk_tokens`` has the tokens of each event where the
    server tells. ``end_ns`` is the end of the answer ([DONE], the last byte), not the last token.
    """

    id: int
    stage: int
    """Index into the manifest's stages."""
    worker: int = 0
    target: str | None = None
    session: int | None = None
    turn: int = 0
    status: Status
    scheduled_ns: int | None = None
    """When the plan wanted it sent; None in a closed loop."""
    ready_ns: int | None = None
    """When plan, concurrency cap and previous turn all allowed it, and the pause of a closed loop's slot whose request
    had failed without a byte was over. started - ready is our own lateness."""
    started_ns: int | None = None
    """When the client took it up: a pooled connection was chosen, or a new one dialled."""
    sent_ns: int | None = None
    """When the last bytes of the request were handed to the kernel: just before the call."""
    first_byte_ns: int | None = None
    chunk_ns: list[int] = []
    unsure: list[int] = []
    """Indexes into ``chunk_ns`` of events that came in one read with a later one while we looked late: their stamp is
    the latest that they can have come at."""
    unsure_since_ns: list[int] = []
    """One for each of them: an instant at which it had certainly not come. Older records have none."""
    chunk_tokens: list[int] | None = None
    end_ns: int | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    """Of the output tokens, those that the server calls reasoning."""
    reasoning_events: int | None = None
    """Of the events with output, those that carried reasoning."""
    text_tokens: int | None = None
    """The answer's text, reasoning and tool calls included, as a tokenizer counted it after the stage."""
    tokens_from: TokensFrom | None = None
    requested_output_tokens: int | None = None
    finish_reason: str | None = None
    http_status: int | None = None
    error: str | None = None
    retry_after_s: float | None = None
    server_timing: str | None = None
    """The answer's Server-Timing header, as it came: what each hop says of its own time."""
    prefill_ns: int | None = None
    """What the engine says at the answer's end that the prompt took: llama.cpp does. Older records have none."""
    retries: int = 0
    """Times it was sent again because a reused connection was closed without a byte, or held bytes from before it."""
    reused: bool | None = None
    """Whether it went over a connection that had served before."""
    streamed: bool = True
    clock: Clock = Clock.USER
    steps: list[Step] = []
    """Of an agent that tells of them; older records have none."""
    correct: bool | None = None
    """Whether the answer held what the dataset knows to be right; None = it knows nothing. Older records have none."""
    text_head: str | None = None
    """The first characters of the answer: an error text played as content is seen by it."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


def encode_record(record: Record) -> bytes:
    """One line of JSON, without its newline."""
    return _encoder.encode(record)


def decode_record(line: bytes | str) -> Record:
    """The record of one line.

    Raises:
        msgspec.MsgspecError: the line is no record (cut off, or another schema).
    """
    return _decoder.decode(line)
