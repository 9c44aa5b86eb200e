"""Reasons not to believe a number: a closed set, each with the sentence a user reads and the remedy."""

from enum import StrEnum

import msgspec


class DoubtKind(StrEnum):
    """Why a number may not be what it seems."""

    REQUESTS_FAILED = "requests_failed"


class Doubt(msgspec.Struct, frozen=True):
    """One doubt about one stage or run. ``blocking`` = the headline cannot stand (exit 3 where it is ours)."""

    kind: DoubtKind
    sentence: str
    remedy: str
    blocking: bool = False
