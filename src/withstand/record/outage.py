"""A service of the stack that was away while a run went on: facts, as the stack's supervisor has seen them."""

import msgspec

STARTED_ANEW = "was started anew, as somebody asked for it."
TAKEN_DOWN = "was taken down"
ON_PURPOSE = frozenset({STARTED_ANEW, TAKEN_DOWN})
"""Reasons that are somebody's wish, and no fault."""


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """From when to when it did not answer, in ns since the run's epoch; it may have begun before that."""

    service: str
    began_ns: int
    back_ns: int | None = None
    """When it was ready again; None = not by now."""
    reason: str = ""
    """How it ended and why: what follows its name in a sentence."""
    asked: bool = True
    """Whether the run's requests go through it."""
