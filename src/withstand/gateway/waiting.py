"""Requests that nobody can be asked for just now, but somebody may be later: who is called next, and who must leave.

It knows neither engines nor sockets. Whoever waits gives a function that is called when something may have changed, and
answers whether it has gone; an order that all can count on is what this module is for:

- who waits for a second time, for its first engine could not be reached, comes first;
- then keys take turns, so that the many requests of one do not stand before the only one of another;
- of one key, first come, first served. Rooms with an engine in common take turns as well.
"""

from collections.abc import Callable, Hashable
from typing import Any

Called = Callable[[], bool]
"""Whether it has gone: to an engine, or away for good. False: there is nobody for it yet."""


class Ticket:
    """A place in a line."""

    __slots__ = ("called", "owner")

    def __init__(self, owner: Hashable, called: Called) -> None:
        self.owner = owner
        self.called = called


_AGAIN = object()
"""The owner of all that wait for a second time."""


class WaitingRoom:
    """Of one model; ``size`` requests may wait, each for at most ``wait_s``. Coming and leaving take constant time."""

    def __init__(self, size: int, wait_s: float, filled: "Callable[[WaitingRoom], None]") -> None:
        self.size = size
        self.wait_s = wait_s
        self._filled = filled
        self.count = 0
        self._lines: dict[Hashable, dict[Ticket, None]] = {}
        """In the order of their turns."""

    def __len__(self) -> int:
        return self.count

    def enter(self, owner: Hashable, called: Called, *, again: bool = False) -> Ticket | None:
        """A place, or ``None`` where there is none left."""
        if self.count >= self.size:
            return None
        ticket = Ticket(_AGAIN if again else owner, called)
        self._lines.setdefault(ticket.owner, {})[ticket] = None
        self.count += 1
        self._filled(self)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Wait no more; one that has left before may do so again."""
        line = self._lines.get(ticket.owner)
        if line is None or ticket not in line:
            return
        del line[ticket]
        self.count -= 1
        if not line:
            del self._lines[ticket.owner]

    def call_next(self) -> bool:
        """Whether somebody has gone."""
        for ticket in tuple(self._lines.get(_AGAIN, ())):  # each may go where another has been already
            if self._call(ticket):
                return True
        for owner, line in self._lines.items():
            if owner is not _AGAIN:
                return self._call(next(iter(line)))
        return False

    def _call(self, ticket: Ticket) -> bool:
        if not ticket.called():
            return False
        self.leave(ticket)
        line = self._lines.pop(ticket.owner, None)
        if line is not None:
            self._lines[ticket.owner] = line
        return True


class Lobby:
    """All waiting rooms. ``soon`` calls a function when the present event is over, so that nothing calls itself."""

    def __init__(self, soon: Callable[[Callable[[], None]], Any]) -> None:
        self._soon = soon
        self._rooms: dict[WaitingRoom, None] = {}
        """Those in which somebody waits, in the order of their turns."""
        self._stirred = False

    def room(self, size: int, wait_s: float) -> WaitingRoom:
        """One more."""
        return WaitingRoom(size, wait_s, self._filled)

    def stir(self) -> None:
        """Something may have changed for whoever waits: an engine has room again, is new, or has come back."""
        if self._rooms and not self._stirred:
            self._stirred = True
            self._soon(self._call_all)

    def _filled(self, room: WaitingRoom) -> None:
        self._rooms[room] = None

    def _call_all(self) -> None:
        self._stirred = False
        going = True
        while going:
            going = False
            for room in tuple(self._rooms):
                if room.call_next():
                    going = True
                    del self._rooms[room]
                    self._rooms[room] = None
                if not room:
                    del self._rooms[room]
