"""How a preparation says how far it is. Who draws it is somebody else's business."""

from typing import Protocol


class Progress(Protocol):
    """Called a few times a second."""

    def __call__(self, step: str, done: int, total: int | None, /) -> None:
        """``step`` is over when ``done`` = ``total``; ``total`` is None where its end is not known beforehand."""
