"""What is to be sent: one request of a workload, before any dialect has put it into bytes."""

import msgspec


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of a chat. ``tool_calls`` and the like are passed on as raw JSON."""

    role: str
    content: str | None = None
    extra: dict[str, msgspec.Raw] = {}


class Request(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One request. Ids count within a stage; times are ns since the stage's start.

    A session is a chain of turns: turn n + 1 is sent ``think_ns`` after turn n's answer has ended, and carries
    the whole history, with the answers that the engine really gave. ``messages`` are the new ones of this turn.
    ``due_ns`` is None where no schedule exists (closed loop) or where the previous turn decides (turn > 0).
    """

    id: int
    session: int
    turn: int = 0
    last_turn: bool = True
    due_ns: int | None = None
    think_ns: int = 0
    messages: tuple[Message, ...]
    prompt_tokens: int | None = None
    """Tokens of the new messages by the workload's tokenizer, without the chat template's; None = not counted."""
    output_tokens: int | None = None
    """The most tokens that the answer may have; None = the engine's default."""
    ignore_eos: bool = False
    """The answer shall have exactly ``output_tokens`` tokens."""
    expected: tuple[str, ...] = ()
    """Answers of which any is right; empty = nobody knows."""
    extra_body: dict[str, msgspec.Raw] = {}
    """Fields of the dataset's own that go into the body as they are (tools, response_format, …)."""
