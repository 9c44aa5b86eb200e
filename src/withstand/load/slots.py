"""The slots of a concurrency cap, and the pause of one whose requests fail without a byte. Pure, as pacing is."""

import heapq

PAUSE_FIRST_NS = 10_000_000
PAUSE_MAX_NS = 1_000_000_000
_DOUBLINGS_MAX = 10


class Slots:
    """Those that are free, or will be when their pause is over."""

    def __init__(self, cap: int) -> None:
        self._unused = cap
        self._free: list[tuple[int, int]] = []
        self._failures: dict[int, int] = {}

    @property
    def next_ns(self) -> int | None:
        """When one is free; None = not before an answer ends."""
        if self._unused:
            return 0
        return self._free[0][0] if self._free else None

    def occupy(self, session: int) -> int:
        """Take the one that has been free for longest; since when."""
        if self._unused:
            self._unused -= 1
            return 0
        free_ns, failures = heapq.heappop(self._free)
        if failures:
            self._failures[session] = failures
        return free_ns

    def free(self, session: int, end_ns: int, began_ns: int | None = None) -> None:
        """It is over. ``began_ns``: it got no byte, so from then until the next there are 10 ms, 20, … up to 1 s."""
        failures = self._failures.pop(session, 0)
        if began_ns is None:
            failures = 0
        else:
            end_ns = max(end_ns, began_ns + min(PAUSE_FIRST_NS << failures, PAUSE_MAX_NS))
            failures = min(failures + 1, _DOUBLINGS_MAX)
        heapq.heappush(self._free, (end_ns, failures))
