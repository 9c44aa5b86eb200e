"""What is played: every behaviour of the truth server, some of them together, and the older dialect, under headings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from withstand.testing.truth.behaviours import parts_of

CHAT: Final = "openai-chat"
COMPLETIONS: Final = "openai"
_ON_DEMAND: Final = "As named"

_GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "What is said": (
        "plain",
        "role_early",
        "role_none",
        "empty_choices",
        "finish_separate",
        "missing_done",
        "reasoning",
        "reasoning_content",
        "tool_calls",
        "huge_tool_calls:40000",
        "two_choices",
        "logprobs",
        "no_stream",
    ),
    "What is counted": (
        "no_usage",
        "no_usage_early_stop",
        "usage_in_every_chunk",
        "usage_inflated",
        "tokens_per_event",
    ),
    "How it is spelled and cut": (
        "crlf",
        "comments",
        "no_space",
        "more_fields",
        "multi_line_data",
        "joined",
        "split:200",
        "bytewise",
        "multibyte",
    ),
    "How it is framed": (
        "chunk_extensions",
        "trailers",
        "gzip",
        "content_length",
        "http10",
        "status_100",
    ),
    "How the time goes": ("slow_headers:60", "stall:200"),
    "Connections that are not kept": ("close_after_response", "close_idle"),
    "Errors behind an HTTP 200": (
        "error_before_token",
        "error_midstream",
        "error_midstream_no_done",
        "finish_abort",
        "malformed",
        "error_text_as_content",
        "empty_200",
        "empty_body",
        "html_200",
        "non_json",
    ),
    "Answers that break off": (
        "cut_short",
        "premature_close",
        "close_before_done",
        "reset",
        "close_before_answer",
        "reset_before_answer",
        "hang",
    ),
    "Answers that are no model's": ("http_500", "http_503", "html_error", "limited", "redirect"),
    "Several at once": (
        "reasoning:4+split:200+crlf+comments",
        "tokens_per_event:3+joined:2",
        "role_early+gzip+bytewise",
    ),
}
_OLDER: Final = ("plain", "usage_in_every_chunk", "multibyte", "logprobs", "no_usage", "error_midstream", "http_500")


class Case(msgspec.Struct, frozen=True):
    """One behaviour, asked for in one dialect."""

    behaviour: str
    group: str
    dialect: str = CHAT

    @property
    def does(self) -> str:
        """What the server does."""
        return "; ".join(part.does for part, _ in parts_of(self.behaviour))


def _all() -> Iterator[Case]:
    for group, behaviours in _GROUPS.items():
        yield from (Case(behaviour, group) for behaviour in behaviours)
    yield from (Case(behaviour, "Over /v1/completions", COMPLETIONS) for behaviour in _OLDER)


CASES: Final = tuple(_all())


def chosen(only: Sequence[str]) -> list[Case]:
    """The cases of these behaviours, in either dialect; one that is not among ours is played all the same.

    Raises:
        UsageError: no such behaviour.
    """
    if not only:
        return list(CASES)
    return [case for name in only for case in _named(name)]


def _named(name: str) -> list[Case]:
    parts_of(name)
    known = [case for case in CASES if name in (case.behaviour, case.behaviour.partition(":")[0])]
    return known or [Case(name, _ON_DEMAND)]
