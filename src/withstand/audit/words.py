"""How sentences of an audit list names."""

from collections.abc import Sequence

_NAMED_MAX = 4


def listed(names: Sequence[str]) -> str:
    """``a, b and 3 more``."""
    more = len(names) - _NAMED_MAX
    if more <= 1:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED_MAX])} and {more} more"
