"""Which request may be sent now. Pure: the caller says what time it is, so tests need no sleeping.

All times are ns since the stage's start. The laws:

- Open loop: a request becomes due by the schedule, whatever the answers do. A cap holds back what is due; that wait
  is seen in ``ready - scheduled``, never lost.
- Closed loop (no schedule, a cap): a slot is a user; it is held through a whole conversation, thinking included.
- A slot of a closed loop whose request failed without a byte pauses before its next one, longer each time (``slots``):
  else a dead server would be asked for everything in a second. ``ready`` is after the pause.
- A turn follows its predecessor's end by its think time; when a turn fails, the rest of its conversation is not sent.
"""

import heapq
from collections import deque

import msgspec

from withstand.load.slots import Slots
from withstand.request import Request


class Due(msgspec.Struct, frozen=True):
    """A request whose time has come."""

    request: Request
    scheduled_ns: int | None
    ready_ns: int


class Dispatcher:
    """Holds the requests that were read ahead, and the slots."""

    def __init__(self, *, cap: int | None, closed: bool, end_ns: int | None) -> None:
        """``end_ns``: nothing is sent from then on; None = until all is sent."""
        self._fresh: deque[Request] = deque()
        self._later: dict[int, deque[Request]] = {}
        self._follow: list[tuple[int, int, Request]] = []
        self._slots = Slots(cap) if cap is not None else None
        self._closed = closed
        self._end_ns = end_ns

    def offer(self, request: Request) -> None:
        """One more request, in the order of the plan; the turns of a session come one after another."""
        if request.turn == 0:
            self._fresh.append(request)
        else:
            self._later.setdefault(request.session, deque()).append(request)

    @property
    def ahead(self) -> int:
        """How many first turns wait here."""
        return len(self._fresh)

    @property
    def idle(self) -> bool:
        """Whether nothing waits here; turns whose predecessor runs do not count."""
        return not self._fresh and not self._follow

    def stop(self, now_ns: int) -> None:
        """Send nothing more from now on."""
        self._end_ns = now_ns if self._end_ns is None else min(self._end_ns, now_ns)

    def ended(self, now_ns: int) -> bool:
        """Whether sending is over by the clock."""
        return self._end_ns is not None and now_ns >= self._end_ns

    def take(self, now_ns: int) -> Due | None:
        """The next request that may be sent at ``now_ns``; None = not yet, or nothing."""
        if self.ended(now_ns):
            return None
        return self._take_follow(now_ns) or self._take_fresh(now_ns)

    def _take_follow(self, now_ns: int) -> Due | None:
        due_ns = self._follow_ns()
        if due_ns is None or due_ns > now_ns:
            return None
        due_ns, _, request = heapq.heappop(self._follow)
        ready_ns = due_ns if self._closed else max(due_ns, self._occupy(request))
        return Due(request, due_ns, ready_ns)

    def _take_fresh(self, now_ns: int) -> Due | None:
        due_ns = self._fresh_ns()
        if due_ns is None or due_ns > now_ns:
            return None
        request = self._fresh.popleft()
        due_ns = self._due_ns(request)
        return Due(request, due_ns, max(due_ns or 0, self._occupy(request)))

    def _due_ns(self, request: Request) -> int | None:
        """A closed loop has no schedule, whatever the plan's rows say."""
        return None if self._closed else request.due_ns

    def _occupy(self, request: Request) -> int:
        return self._slots.occupy(request.session) if self._slots else 0

    def _fresh_ns(self) -> int | None:
        """When the next first turn may be sent; None = not before an answer ends."""
        free_ns = self._slots.next_ns if self._slots else 0
        return None if not self._fresh or free_ns is None else max(self._due_ns(self._fresh[0]) or 0, free_ns)

    def _follow_ns(self) -> int | None:
        """When the next later turn may be; in a closed loop it has its slot."""
        free_ns = 0 if self._closed or not self._slots else self._slots.next_ns
        return None if not self._follow or free_ns is None else max(self._follow[0][0], free_ns)

    def wake_ns(self) -> int | None:
        """When ``take`` is worth asking again if nothing else happens; None = not before an answer ends."""
        candidates = (self._follow_ns(), self._fresh_ns())
        return min((at_ns for at_ns in candidates if at_ns is not None), default=None)

    def finished(self, request: Request, end_ns: int, *, ok: bool, unheard_ns: int | None = None) -> list[Request]:
        """A request that was taken has ended; the turns that will therefore never be sent.

        ``unheard_ns``: when it was begun, where it failed without a byte from the server.
        """
        later = self._later.get(request.session)
        goes_on = ok and bool(later)
        if self._slots and not (self._closed and goes_on):
            self._slots.free(request.session, end_ns, unheard_ns if self._closed else None)
        if goes_on and later:
            following = later.popleft()
            heapq.heappush(self._follow, (end_ns + following.think_ns, following.id, following))
        if not goes_on or not later:
            self._later.pop(request.session, None)
        return [] if ok else list(later or ())

    def leftover(self, now_ns: int) -> list[Due]:
        """What was due by ``now_ns`` (or by the stage's end) and has not been sent: the backlog of a cap."""
        by_ns = now_ns if self._end_ns is None else min(now_ns, self._end_ns)
        dues = ((r, self._due_ns(r)) for r in self._fresh)
        fresh = [Due(r, due_ns, due_ns) for r, due_ns in dues if due_ns is not None and due_ns <= by_ns]
        follow = [Due(r, due_ns, due_ns) for due_ns, _, r in self._follow if due_ns <= by_ns]
        return fresh + follow
