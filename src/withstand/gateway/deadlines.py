"""How long a request may still take: pure, with the time passed in."""

NEVER = float("inf")
_ALL_OF_IT = "The answer took longer than the gateway waits for all of one."


class Deadlines:
    """Of one request: one for what it waits for just now, and one for everything."""

    __slots__ = ("_last_s", "_next_s", "_seen", "_what", "_within_s")

    def __init__(self, last_s: float) -> None:
        self._last_s = self._next_s = last_s
        self._within_s = 0.0
        self._what = _ALL_OF_IT
        self._seen: bytes | None = None

    def expect(self, within_s: float, what: str, now_s: float) -> None:
        """From now on it waits for this; ``what`` says it in the past, for whoever hears that it did not come."""
        self._within_s, self._what = within_s, what
        self._next_s = now_s + within_s

    def overdue(self, piece: bytes | None, now_s: float) -> str | None:
        """What did not come in time. ``piece`` is the latest of the answer: a new one is progress.

        No clock is read when a piece comes, so a pause is found out as late as the looks are apart.
        """
        if piece is not self._seen:
            self._seen = piece
            self._next_s = now_s + self._within_s
        if now_s >= self._last_s:
            return _ALL_OF_IT
        return self._what if now_s >= self._next_s else None
