"""What speaks against one more request for an engine, besides what it has under way: pure, with the time passed in.

What others have sent there, when the engine itself was asked not long ago. And errors: an engine that fails at once
never has anything under way, and would draw all requests; each error in a row doubles what it seems to have to do,
which is forgotten with time.
"""

SAID_S_MAX = 1.0
"""What an engine said longer ago is not believed."""
_ERRORS_MAX = 1024.0
_HALVED_S = 5.0
_FORGOTTEN = 0.5
"""Half a request: less must not decide between two that are idle."""


class Unseen:
    """Counted in requests."""

    __slots__ = ("_errors_at_s", "_others", "errors", "said_s")

    def __init__(self) -> None:
        self.said_s: float | None = None
        """When the engine was asked that has answered last."""
        self._others = 0.0
        self.errors = 0.0
        self._errors_at_s = 0.0

    def at(self, now_s: float) -> float:
        """All of it."""
        others = self._others if self.said_s is not None and now_s - self.said_s <= SAID_S_MAX else 0.0
        return others + self._left(now_s) if self.errors else others

    def said(self, load: float, in_flight: int, asked_s: float) -> None:
        """The engine has so much to do; of that up to ``in_flight`` were ours."""
        self._others, self.said_s = max(0.0, load - in_flight), asked_s

    def worked(self) -> None:
        """A request went well."""
        self.errors = self.errors / 2 if self.errors >= 1 else 0.0

    def erred(self, now_s: float) -> None:
        """One did not, and maybe at once."""
        self.errors, self._errors_at_s = min(_ERRORS_MAX, 2 * self._left(now_s) + 1), now_s

    def _left(self, now_s: float) -> float:
        left: float = self.errors * 0.5 ** ((now_s - self._errors_at_s) / _HALVED_S)
        return left if left > _FORGOTTEN else 0.0
