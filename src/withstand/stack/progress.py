"""How a step that takes a while is told to whoever watches."""

from typing import Protocol


class Progress(Protocol):
    """Called with (what is being done, how much of it, of how much; None = not known)."""

    def __call__(self, step: str, done: int, total: int | None) -> None:
        """The step is over when done = total."""
