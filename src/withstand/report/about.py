"""What a report says besides the numbers: what was asked, of what, on which machine."""

from typing import Any

import msgspec

from withstand.doctor.finding import Diagnosis


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The circumstances of a run. Everything but the version came from outside and is escaped where it is shown."""

    title: str
    """What was measured: a model, else an address."""
    created_utc: str | None
    """``2026-11-28T03:04:05Z``."""
    version: str
    plan: dict[str, Any]
    """As the user could have written it; secrets are already taken out."""
    machine: dict[str, str]
    engine: str | None
    diagnosis: Diagnosis | None = None
    """Of the path, where it was examined."""
    board: str | None = None
    """The page beside it with what a stack's monitoring saw, where there is one."""
