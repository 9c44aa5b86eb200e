"""Where one request's time went, in the gateway or elsewhere: pure, with the time passed in, in monotonic ns."""


class Stopwatch:
    """Runs from the read that brought the request's last byte."""

    __slots__ = ("_ours_since_ns", "_queued_at_ns", "began_ns", "hop_ns", "queue_ns", "sent_ns", "start_ns")

    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.hop_ns = 0
        """In the gateway alone: not in connects, not in the engine."""
        self.queue_ns: int | None = None
        """Waited for an engine that had room; None = it need not wait."""
        self.sent_ns: int | None = None
        self.began_ns: int | None = None
        """The first byte of the answer's body."""
        self._ours_since_ns: int | None = start_ns
        self._queued_at_ns = 0

    def theirs(self, now_ns: int) -> None:
        """From now on somebody else is waited for."""
        if self._ours_since_ns is not None:
            self.hop_ns += now_ns - self._ours_since_ns
            self._ours_since_ns = None

    def sends(self, now_ns: int) -> None:
        """An engine has the request, and is waited for."""
        self.sent_ns = now_ns
        if self._ours_since_ns is not None:
            self.hop_ns += now_ns - self._ours_since_ns
            self._ours_since_ns = None

    def worked(self, since_ns: int, now_ns: int) -> None:
        """The gateway did, and somebody else is waited for again."""
        self.hop_ns += now_ns - (since_ns if self._ours_since_ns is None else self._ours_since_ns)
        self._ours_since_ns = None

    def ours(self, now_ns: int) -> None:
        """From now on the gateway works."""
        if self._ours_since_ns is None:
            self._ours_since_ns = now_ns

    def waits(self, now_ns: int) -> None:
        """There is no engine for it just now."""
        self.theirs(now_ns)
        self._queued_at_ns = now_ns

    def waited(self, now_ns: int) -> None:
        """There is, or it waits no longer."""
        self.ours(now_ns)
        self.queue_ns = (self.queue_ns or 0) + now_ns - self._queued_at_ns
