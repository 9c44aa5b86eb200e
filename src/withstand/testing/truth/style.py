"""How an answer is given: what is said, how it is spelled, framed and ended.

Plain data; a behaviour changes some of it.
"""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from withstand.testing.truth.framed import Frame, until_close
from withstand.testing.truth.score import End, Pass
from withstand.testing.truth.spelled import Spell, plain


class Role(StrEnum):
    """When the chunk that says only ``assistant`` comes."""

    WITH_FIRST = "with_first"  # just before the first token, as vLLM has it
    EARLY = "early"  # with the headers, as llama.cpp and many gateways have it
    NONE = "none"


class Usage(StrEnum):
    """When the counts are told."""

    ASKED = "asked"
    NEVER = "never"
    ALWAYS = "always"


class Thinking(msgspec.Struct, frozen=True):
    """The first ``tokens`` (None = half) stand under this name, not under ``content``."""

    field: str
    tokens: int | None = None


class Break(msgspec.Struct, frozen=True):
    """After so many tokens (None = half) the answer goes no further; ``payload``, if any, is said instead."""

    after: int | None
    payload: bytes | None


class Refusal(msgspec.Struct, frozen=True):
    """An answer that is no model's."""

    status: int
    content_type: str
    body: bytes
    headers: tuple[str, ...] = ()


def numbered(index: int) -> str:
    """``t0``, `` t1``, …: a word for each token, so that a lost one is seen."""
    return f" t{index}" if index else "t0"


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """The default is a faultless vLLM: role with the first token, finish reason on the last, usage when asked."""

    word: Callable[[int], str] = numbered
    sentence: tuple[str, ...] | None = None
    """The whole answer, whatever length was asked for."""
    role: Role = Role.WITH_FIRST
    thinking: Thinking | None = None
    tool_chars: int | None = None
    """The answer is the arguments of a tool call, with so many characters to a token."""
    per_event: int = 1
    choices: int = 1
    """The events alternate between so many answers to the one request."""
    early_stop: bool = False
    """Half of the tokens are all there is to say."""
    finish: str | None = None
    """The finish reason, whatever the length says."""
    logprobs: int = 0
    """Each token comes with so many others that it might have been."""
    empty_first: bool = False
    """A chunk without choices comes with the headers."""
    finish_apart: bool = False
    usage: Usage = Usage.ASKED
    claim_factor: float = 1.0
    """Usage claims so many times the tokens that are said."""
    broken: Break | None = None
    done: bool = True
    stall_ms: float = 0.0
    head_ms: float = 0.0
    whole: bool = False
    """One JSON body, although a stream was asked for."""
    refusal: Refusal | None = None
    silent: bool = False
    """Not a byte."""
    spell: Spell = plain
    body: tuple[Pass, ...] = ()
    """What is done to the events before they are framed."""
    frame: Frame | None = None
    """None = chunks for a stream, a length for anything else."""
    wire: tuple[Pass, ...] = ()
    """What is done to the framed bytes."""
    before: bytes = b""
    """What precedes the answer's head."""
    end: End = End.KEEP
    idle_ms: float | None = None

    def unchunked(self) -> "Style":
        """For who asked by HTTP/1.0 and may not be sent chunks: a stream ends with its connection."""
        if self.frame is not None or self.refusal is not None or self.whole or self.silent:
            return self
        end = End.CLOSE if self.end is End.KEEP else self.end
        return msgspec.structs.replace(self, frame=until_close, end=end)
