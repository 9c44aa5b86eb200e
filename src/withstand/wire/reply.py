"""What an answer has said so far, and how it is to be judged.

A reader is fed the body's bytes with the stamp of their arrival and fills a Reply. The law: whatever the bytes are,
a reader never raises; what is wrong with an answer is said in ``Reply.fault``.
"""

import sys
from collections.abc import Callable
from typing import Protocol

from withstand.record import Status, Step, TokensFrom

HEAD_CHARS = 160
WHOLE_BYTES_MAX = 256 << 20
ERROR_CHARS = 300


def one_line(text: str, chars_max: int = ERROR_CHARS) -> str:
    """A stranger's text as it may be shown: one line, no control characters, not endless."""
    shown = text[: 8 * chars_max]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else " " for c in shown)
    return " ".join(shown.split())[:chars_max]


class Reply:
    """The growing facts of one answer. Mutable, because a token is too cheap for a new object."""

    __slots__ = (
        "_cumulative",
        "_keeps_all",
        "_room",
        "cached_tokens",
        "chunk_ns",
        "done",
        "fault",
        "finish_reason",
        "output_tokens",
        "prefill_ns",
        "prompt_tokens",
        "reasoning_events",
        "reasoning_tokens",
        "server_timing",
        "steps",
        "texts",
        "trailed",
        "unsure",
        "unsure_since_ns",
    )

    def __init__(self, *, keep_text: bool = False) -> None:
        self.chunk_ns: list[int] = []
        self.unsure: list[int] = []
        """Events that may have come before their stamp: see ``Record.unsure``. Filled by whoever reads."""
        self.unsure_since_ns: list[int] = []
        self.trailed = False
        """Whether something without output has come behind the last output. Kept where a piece holds several events."""
        self.texts: list[str] = []
        """What the events said: of all, or of as many as a head needs."""
        self._keeps_all = keep_text
        self._room = sys.maxsize if keep_text else HEAD_CHARS
        self.finish_reason: str | None = None
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.reasoning_tokens: int | None = None
        self.reasoning_events: int | None = None
        """None = the dialect does not tell reasoning from the answer."""
        self.steps: list[Step] = []
        """What an agent has told of its steps; ``at_ns`` as stamped."""
        self.prefill_ns: int | None = None
        """What the engine says that the prompt took."""
        self.server_timing: str | None = None
        """What an agent has told behind its answer: as the header of that name, which had gone before."""
        self.done = False
        self.fault: tuple[Status, str] | None = None
        self._cumulative: list[int] = []

    def add_output(self, text: str, stamp_ns: int, tokens_so_far: int | None = None) -> None:
        """One event that carried output."""
        self.chunk_ns.append(stamp_ns)
        if self._room > 0:
            self.texts.append(text if self._keeps_all else text[:HEAD_CHARS])
            self._room -= len(text)
        if tokens_so_far is not None:
            self._cumulative.append(tokens_so_far)

    @property
    def room(self) -> int:
        """How many characters more of the output matter; of what comes behind them, only when it came does."""
        return self._room if self._keeps_all else HEAD_CHARS - sum(map(len, self.texts))

    @property
    def head(self) -> str:
        """What the output began with: ``HEAD_CHARS`` at the most."""
        return "".join(self.texts)[:HEAD_CHARS]

    def is_plain(self, text: str) -> bool:
        """Whether this text came in one event, and nothing else: no end, no count, no reasoning, no fault."""
        more = (self.done, self.fault, self.finish_reason, self.reasoning_events, self.steps, self.prefill_ns)
        counts = (self.prompt_tokens, self.output_tokens, self.cached_tokens, self.reasoning_tokens)
        said = self.answer() == text and len(self.chunk_ns) == 1
        return said and not self._cumulative and not any(more) and counts == (None,) * len(counts)

    def fail(self, status: Status, error: str) -> None:
        """What is wrong; the first fault stays."""
        if self.fault is None:
            self.fault = (status, one_line(error))

    def answer(self) -> str:
        """The whole text, for the history of a conversation."""
        return "".join(self.texts) if self._keeps_all else ""

    def last_words(self) -> str:
        """The text behind the last call of a tool: an agent's answer."""
        events = max((step.events for step in self.steps if step.kind == "tool"), default=0)
        return "".join(self.texts[events:]) if self._keeps_all else ""

    @property
    def chunk_tokens(self) -> list[int] | None:
        """Tokens of each event, where the server counted along with every one of them."""
        if not self._cumulative or len(self._cumulative) != len(self.chunk_ns):
            return None
        before = [0, *self._cumulative[:-1]]
        return [now - then for now, then in zip(self._cumulative, before, strict=True)]

    def counted(self) -> tuple[int | None, TokensFrom | None]:
        """(Output tokens, who counted them): the server, else the events, as an estimate.

        A server that claims 0 tokens behind events with output has not counted.
        """
        if self.output_tokens or (self.output_tokens is not None and not self.chunk_ns):
            return self.output_tokens, TokensFrom.SERVER
        if self.chunk_ns:
            return len(self.chunk_ns), TokensFrom.CHUNKS
        return None, None

    def verdict(self) -> tuple[Status, str | None]:
        """(Status, what is wrong) of an answer whose HTTP message has ended as it should."""
        if self.fault:
            return self.fault
        if not self.chunk_ns and not self.output_tokens:
            return Status.EMPTY, "HTTP 200, but not a single token"
        if not self.done and not self.finish_reason:
            return Status.TRUNCATED, "The stream ended without a finish reason and without [DONE]"
        return Status.OK, None


class StreamReader(Protocol):
    """Reads a body as it comes."""

    reply: Reply

    def feed(self, data: bytes, stamp_ns: int) -> None:
        """The next bytes, cut anywhere."""

    @property
    def idle(self) -> bool:
        """Whether an event has ended here, and nothing of the next is known."""

    def close(self, stamp_ns: int) -> None:
        """The body has ended."""


OnObject = Callable[[bytes, Reply, int], None]
"""Takes (an event's data, the reply that it belongs to, its stamp)."""


class WholeReader:
    """Reads a body that says all at once: it is parsed when it has ended."""

    idle = False

    def __init__(self, reply: Reply, parse: "Parse") -> None:
        self.reply = reply
        self._parse = parse
        self._parts: list[bytes] = []
        self._bytes = 0

    def feed(self, data: bytes, stamp_ns: int) -> None:  # noqa: ARG002 - one shape for all readers
        """Keep the bytes, up to a limit that no answer of a model comes near."""
        self._bytes += len(data)
        if self._bytes > WHOLE_BYTES_MAX:
            self._parts.clear()
            self.reply.fail(Status.BAD_ANSWER, "The answer has more than 256 MiB")
        else:
            self._parts.append(data)

    def close(self, stamp_ns: int) -> None:
        """Parse them."""
        if self.reply.fault is None:
            self._parse(b"".join(self._parts), self.reply, stamp_ns)


class Parse(Protocol):
    """A dialect's reading of a whole body."""

    def __call__(self, body: bytes, reply: Reply, stamp_ns: int) -> None:
        """Fill the reply, or fail it."""
