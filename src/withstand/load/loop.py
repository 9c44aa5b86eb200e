"""The worker's event loop: descriptors, who is called when they are ready, and how late we may have looked.

Where tokens come faster than one every tenth of a millisecond, a poll for each of them is most of the cost. The
kernel stamps them while we are away, so the loop then naps for a while between two polls and takes what has come in
one go. It never naps where the stamps would be our own, nor when it has enough to do without.

The kernel reports what is ready in turn. When thousands of streams are, the last waits for all before it, and a first
token that is read together with the second is one without a time. So what must not wait is asked for apart, and first.
"""

import socket

from withstand import clock
from withstand.load.corewait import CoreWait
from withstand.load.poller import AT_ONCE, READ, Poller
from withstand.load.receiver import Handler, round_of
from withstand.record import LOOK_NS

NAP_NS = 1_000_000
TURN_NAP_NS = 500_000
"""For whom the end of an answer may be when another request is due."""
SHORT_NAP_NS = 100_000
"""For whom the end of an answer frees the slot of the next request."""
_DENSE_NS = 100_000
"""Longer naps are for who finds an event for each such time: at 10,000 a second and more."""
_MEMORY_NS = 5_000_000
"""How long the rate of events is remembered, about: one send between two naps does not change it."""
_FEW = 32
"""To look through a report of so many takes less time than to ask the kernel."""
_WAKE_NS = 2 * LOOK_NS
"""From an event to our turn on a core that is free: 0.1 ms was too little in 1 of 4,000 cases."""
_NAP_SPARE_NS = 100_000
"""A nap may last longer than asked; it must not make a send late."""


class Loop:
    """Polls and hands over."""

    def __init__(self, nap_ns: int) -> None:
        self._poller = Poller()
        self._urgent = self._poller.nest()
        self._round, self._urgent_round = round_of(self._poller), round_of(self._urgent)
        self._poller_of: dict[int, Poller] = {}
        self._handlers: list[Handler | None] = []
        """By descriptor, of which the system gives the least that is free."""
        self._retired: list[socket.socket] = []
        self._waited = True
        self._busy_ns = 0
        self.nap_ns = nap_ns
        """The longest; 0 = never."""
        self._events_per_ns = 0.0
        self._core_wait = CoreWait()
        self._naps = 0
        """Since the account was read."""
        self._slept = True
        """The last turn waited, and nothing but its end has ended that wait."""
        self._began_ns = self.left_ns = self._counted_ns = clock.now_ns()
        self.looked_ns = self._began_ns
        """What is found now cannot have come before this instant, but for the time that it took to wake us."""
        self.since_ns = self._empty_ns = self._began_ns
        """What is found now cannot have come before this instant, however long that took."""
        self._certain_ns = self._began_ns, self._began_ns
        """Both, if we have not slept as we believe."""

    def add(self, descriptor: int, events: int, handler: Handler) -> None:
        """Call ``handler(events)`` when the descriptor is ready, before those that may wait."""
        self._handlers.extend([None] * (descriptor + 1 - len(self._handlers)))
        self._handlers[descriptor] = handler
        self._poller_of[descriptor] = self._urgent
        self._urgent.register(descriptor, events)

    def change(self, descriptor: int, events: int) -> None:
        """Wait for something else."""
        self._poller_of[descriptor].modify(descriptor, events)

    def hurry(self, descriptor: int) -> None:
        """What comes for it to read must not wait for others from now on."""
        self._move(descriptor, self._urgent)

    def relax(self, descriptor: int) -> None:
        """What comes for it to read may wait its turn from now on."""
        self._move(descriptor, self._poller)

    def _move(self, descriptor: int, to: Poller) -> None:
        before = self._poller_of[descriptor]
        if before is not to:
            before.unregister(descriptor)
            to.register(descriptor, READ)
            self._poller_of[descriptor] = to

    def remove(self, descriptor: int) -> None:
        """Do not call any more."""
        poller = self._poller_of.pop(descriptor, None)
        if poller is not None:
            self._handlers[descriptor] = None
            poller.unregister(descriptor)

    def retire(self, sock: socket.socket) -> None:
        """Close after this turn: what is still to be handed over in it must not meet a new owner of the number."""
        self.remove(sock.fileno())
        self._retired.append(sock)

    def turn(self, timeout_s: float, wake_ns: int) -> int:
        """Wait, hand over what is ready, and say how long that kept us, in ns. ``wake_ns``: when we must be back."""
        nap_ns = min(self._longest_nap_ns(), wake_ns - self.left_ns - _NAP_SPARE_NS - self._busy_ns)
        if nap_ns > self._busy_ns:
            clock.sleep_s(nap_ns / 1e9)
            self._naps += 1
        asked_ns = clock.now_ns()
        found = self._round.wait(timeout_s)
        is_urgent = self._may_be_urgent(found)
        if is_urgent:
            found += self._urgent_round.wait(0.0)
        began_ns = clock.now_ns()
        self._count(found, began_ns - self._counted_ns)
        self._counted_ns = began_ns
        self._waited = began_ns - asked_ns > LOOK_NS
        self._certain_ns = self._began_ns, self._empty_ns
        woken_ns = self._woken_ns(asked_ns, began_ns) if self._waited else None
        self.looked_ns = began_ns if self._waited and self._slept else self._began_ns
        self.since_ns = woken_ns or self._empty_ns
        if found < AT_ONCE:
            self._began_ns = began_ns
            self._empty_ns = woken_ns or asked_ns
        if is_urgent:
            self._urgent_round.hand_over(self._handlers)
        self._round.hand_over(self._handlers)
        if self._retired:
            self._close_retired()
        self.left_ns = clock.now_ns()
        self._busy_ns = self.left_ns - began_ns
        return self._busy_ns

    def _longest_nap_ns(self) -> int:
        if self._events_per_ns * _DENSE_NS >= 1:
            return self.nap_ns
        return 0 if self._waited else min(self.nap_ns, SHORT_NAP_NS)

    def _count(self, events: int, since_ns: int) -> None:
        """A mean over time that forgets."""
        self._events_per_ns += (events - self._events_per_ns * since_ns) / (since_ns + _MEMORY_NS)

    def _woken_ns(self, asked_ns: int, began_ns: int) -> int | None:
        """Until this instant we slept, so nothing had come; None = we may not have slept, but lacked a core.

        Who is stopped (SIGSTOP, a freezer, a debugger) gets a core to stop, and another to go on.
        """
        self._core_wait.sample()
        self._slept = self._core_wait.turns() <= 1 + self._naps
        self._naps = 0
        grown_ns = self._core_wait.grown_ns() if self._slept else None
        woken_ns = None if grown_ns is None else began_ns - grown_ns - _WAKE_NS
        return woken_ns if woken_ns is not None and woken_ns > asked_ns else None

    def _may_be_urgent(self, found: int) -> bool:
        return self._urgent is not self._poller and (found >= _FEW or self._round.has(self._urgent.descriptor))

    def shorten_naps(self) -> None:
        """Events of one stream come so fast that naps throw them together."""
        self.nap_ns = min(self.nap_ns, max(SHORT_NAP_NS, self.nap_ns // 2))

    def may_have_waited(self, stamp_ns: int, read_ns: int) -> bool:
        """Whether what came in one read with something stamped so could have come noticeably before it.

        We were busy, or we slept, were woken, and then had to wait for a core. Or something has come while we are said
        to have slept: then we were stopped on the way into the wait, which nobody keeps account of.
        """
        if stamp_ns < self.since_ns:
            self.looked_ns, self.since_ns = self._certain_ns
        if read_ns - stamp_ns > LOOK_NS or stamp_ns - self.looked_ns > LOOK_NS:
            return True
        return self._waited and (self._core_wait.grown_ns() or 0) > LOOK_NS

    def close(self) -> None:
        """Give the poller's descriptor back."""
        self._close_retired()
        self._core_wait.close()
        self._urgent.close()
        self._poller.close()

    def _close_retired(self) -> None:
        while self._retired:
            self._retired.pop().close()
