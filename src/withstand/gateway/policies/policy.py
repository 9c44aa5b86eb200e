"""What a policy is: it looks at a request once, and says how an engine is chosen for it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from withstand.gateway.asked import Asked
from withstand.gateway.engine import Seat

Choose = Callable[[Sequence[Seat], float], Seat]
"""Of one seat or more, all with a weight, at a time in seconds; asked again where the one chosen could not serve."""
Header = Callable[[bytes], bytes | None]
"""A request's header by its name in small letters."""


class Policy(Protocol):
    """One for each model, which may remember what it has chosen."""

    def chooser(self, asked: Asked, header: Header) -> Choose:
        """For one request. Only what is needed of it is computed."""
