"""One thread that does things when they are due and when descriptors are ready. Knows neither HTTP nor tokens.

A timerfd wakes it, where there is one, since polling time-outs are whole milliseconds.
"""

import heapq
from collections.abc import Callable
from itertools import count

from withstand import clock
from withstand.load.poller import READ, WRITE, Poller
from withstand.load.timer import Alarm

_ACTIONS_PER_TURN = 64
_TURN_S_MAX = 1.0


class Clockwork:
    """``at`` and ``watch`` from within the loop; ``run`` until ``stop``."""

    def __init__(self) -> None:
        self._poller = Poller()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._running = False
        self._armed_ns = 0
        self._alarm = Alarm.open()
        if self._alarm is not None:
            self.watch(self._alarm.fd, self._rang)

    def at(self, due_ns: int, action: Callable[[], None]) -> None:
        """Do it then; things due at one instant are done in the order of asking."""
        heapq.heappush(self._due, (due_ns, next(self._order), action))

    def watch(self, descriptor: int, handler: Callable[[int], None]) -> None:
        """Call the handler with the events whenever the descriptor can be read."""
        self._handlers[descriptor] = handler
        self._poller.register(descriptor, READ)

    def watch_writing(self, descriptor: int, *, writing: bool) -> None:
        """Also, or no longer, when it can be written to."""
        self._poller.modify(descriptor, READ | WRITE if writing else READ)

    def unwatch(self, descriptor: int) -> None:
        """Forget it; to be done before it is closed."""
        del self._handlers[descriptor]
        self._poller.unregister(descriptor)

    def run(self) -> None:
        """Go on until ``stop``."""
        self._running = True
        while self._running:
            self._do_what_is_due()
            self._set_alarm()
            for descriptor, events in self._poller.wait(self._patience_s()):
                handler = self._handlers.get(descriptor)
                if handler is not None:
                    handler(events)

    def stop(self) -> None:
        """Let ``run`` return."""
        self._running = False

    def close(self) -> None:
        """Give the descriptors back."""
        if self._alarm is not None:
            self.unwatch(self._alarm.fd)
            self._alarm.close()
        self._poller.close()

    def _do_what_is_due(self) -> None:
        """Not endlessly: the sockets want their turn."""
        for _ in range(_ACTIONS_PER_TURN):
            if not self._due or self._due[0][0] > clock.now_ns():
                return
            heapq.heappop(self._due)[2]()

    def _set_alarm(self) -> None:
        if self._alarm is not None and self._due and self._due[0][0] != self._armed_ns:
            self._armed_ns = self._due[0][0]
            self._alarm.set(self._armed_ns)

    def _patience_s(self) -> float:
        if not self._due:
            return _TURN_S_MAX
        left_s = (self._due[0][0] - clock.now_ns()) / 1e9
        if left_s <= 0:
            return 0.0
        return _TURN_S_MAX if self._alarm is not None else min(left_s, _TURN_S_MAX)

    def _rang(self, _: int) -> None:
        assert self._alarm is not None
        self._alarm.clear()
        self._armed_ns = 0
