"""The comparison itself, for programs: its own structure and names. Unknown is null, and no number is infinite."""

from collections.abc import Sequence

import msgspec

from withstand import __version__
from withstand.compare.shape import Comparison, Decision
from withstand.report.json import finite

SCHEMA = 1


def comparison_json(comparison: Comparison, decisions: Sequence[Decision], now: str) -> str:
    """The whole file, indented, with a newline at its end."""
    document = {
        "schema": SCHEMA,
        "kind": "comparison",
        "created_utc": now,
        "withstand": __version__,
        **msgspec.to_builtins(comparison),
        "decisions": msgspec.to_builtins(list(decisions)),
    }
    return msgspec.json.format(msgspec.json.encode(finite(document)), indent=2).decode() + "\n"
