"""For how long we have really listened. Who was away hears nothing, and nobody was silent because of that."""

from withstand import clock

_GLANCE_NS = 1_000_000_000


class Ear:
    """Asked again and again; an interval longer than a second was one in which we did not listen."""

    def __init__(self, since_ns: int | None = None) -> None:
        """``since_ns``, monotonic: nothing is expected before; None = now."""
        self._looked_ns = clock.now_ns() if since_ns is None else since_ns

    def listened_ns(self) -> int:
        """Since the last call."""
        now_ns = clock.now_ns()
        listened_ns = min(max(0, now_ns - self._looked_ns), _GLANCE_NS)
        self._looked_ns = max(now_ns, self._looked_ns)
        return listened_ns
