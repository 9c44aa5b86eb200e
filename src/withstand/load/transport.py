"""The connections of one worker: a pool of idle ones, the rule of retrying, deadlines, the client's own limits.

It knows sockets and exchanges; it does not know which request comes next.
"""

from withstand import clock
from withstand.load.connection import Connection, State
from withstand.load.exchange import Exchange
from withstand.load.loop import Loop
from withstand.load.owner import Route
from withstand.load.selfcheck import SelfCheck
from withstand.load.stamps import StampClock
from withstand.record import Status
from withstand.spec import Timeouts

_TAIL_GRACE_NS = 1_000_000_000
_PUNCTUALITY = 4
"""A deadline is seen to have passed within this part of the shortest of them."""


class Transport:
    """Sends exchanges and ends them, each exactly once."""

    def __init__(self, route: Route, loop: Loop, check: SelfCheck) -> None:
        self.route = route
        self.loop = loop
        self.check = check
        self.stamps = StampClock(check.lag)
        self._open: dict[int, Connection] = {}
        self._idle: list[Connection] = []
        self._waiting_to_dial: list[Exchange] = []
        self._timeouts_ns = _in_ns(route.timeouts)
        self._check_every_ns = min(_TAIL_GRACE_NS, *self._timeouts_ns.values()) // _PUNCTUALITY
        self._check_next_ns = 0

    def send(self, exchange: Exchange) -> None:
        """Begin: over the connection used last, or a new one."""
        if exchange.started_ns is None:
            exchange.started_ns = clock.now_ns()
        while self._idle:
            connection = self._idle.pop()
            if connection.state is State.IDLE:
                exchange.reused = connection.served > 0
                connection.begin(exchange)
                return
        self._dial(exchange)

    def preconnect(self, connections: int) -> None:
        """Begin to open so many; ``opening`` falls as they are done."""
        for _ in range(connections):
            Connection(self).dial(None)

    @property
    def opening(self) -> bool:
        """Whether a connection is still being opened that no request waits for."""
        return any(c.exchange is None and c.state is not State.IDLE for c in self._open.values())

    @property
    def hears(self) -> bool:
        """Whether an answer has begun that is not over."""
        return any(c.exchange is not None and c.exchange.first_byte_ns is not None for c in self._open.values())

    def sweep(self, now_ns: int) -> None:
        """A few times a second: end what has waited too long, measure the clocks again."""
        self.stamps.measure()
        if now_ns >= self._check_next_ns:
            self._check_next_ns = now_ns + self._check_every_ns
            for connection in list(self._open.values()):
                self._check_deadlines(connection, now_ns)
        self.dial_waiting()

    def dial_waiting(self) -> None:
        """Try again where a Unix socket's queue of new connections was full."""
        waiting, self._waiting_to_dial = self._waiting_to_dial, []
        now_ns = clock.now_ns()
        for exchange in waiting:
            if now_ns - (exchange.started_ns or now_ns) > self._timeouts_ns["connect"]:
                exchange.settle(Status.TIMEOUT, "No connection within the time given", now_ns)
            else:
                self._dial(exchange)

    @property
    def wants_to_dial(self) -> bool:
        """Whether ``dial_waiting`` has something to do."""
        return bool(self._waiting_to_dial)

    def cancel_all(self) -> None:
        """End every exchange as cancelled, now."""
        now_ns = clock.now_ns()
        waiting, self._waiting_to_dial = self._waiting_to_dial, []
        for exchange in waiting:
            exchange.settle(Status.CANCELLED, "Stopped by us", now_ns)
        for connection in list(self._open.values()):
            connection.abandon(Status.CANCELLED, "Stopped by us", now_ns)

    # What connections report.

    def opened(self, connection: Connection) -> None:
        """It has a descriptor."""
        self._open[connection.descriptor] = connection
        self.check.add_dial(len(self._open))

    def closed(self, connection: Connection) -> None:
        """Its descriptor is gone; the pool drops it when it comes across it."""
        self._open.pop(connection.descriptor, None)

    def free(self, connection: Connection) -> None:
        """It can serve again."""
        self._idle.append(connection)

    def retry(self, exchange: Exchange) -> None:
        """A reused connection was closed, or held what nobody had asked for: send again, over a fresh one."""
        exchange.retries += 1
        exchange.reused = False
        exchange.restart()
        self._dial(exchange)

    def _dial(self, exchange: Exchange) -> None:
        exchange.reused = False
        if not Connection(self).dial(exchange):
            self._waiting_to_dial.append(exchange)

    def _check_deadlines(self, connection: Connection, now_ns: int) -> None:
        exchange = connection.exchange
        if exchange is None:
            return
        if exchange.reply.done and now_ns - (exchange.last_byte_ns or now_ns) > _TAIL_GRACE_NS:
            connection.abandon(Status.TRUNCATED, "No end of the body after [DONE]", now_ns)
        elif fault := self._overdue(connection, exchange, now_ns):
            connection.abandon(Status.TIMEOUT, fault, now_ns)

    def _overdue(self, connection: Connection, exchange: Exchange, now_ns: int) -> str | None:
        timeouts = self.route.timeouts
        began_ns = connection.began_ns
        if connection.state is State.CONNECTING:
            late = now_ns - began_ns > self._timeouts_ns["connect"]
            return f"No connection within {timeouts.connect_s:g} s" if late else None
        if now_ns - began_ns > self._timeouts_ns["total"]:
            return f"The answer took longer than {timeouts.total_s:g} s"
        if now_ns - max(connection.moved_ns, exchange.last_byte_ns or 0, began_ns) > self._timeouts_ns["read"]:
            return f"No byte for {timeouts.read_s:g} s"
        return None


def _in_ns(timeouts: Timeouts) -> dict[str, int]:
    return {
        "connect": int(timeouts.connect_s * 1e9),
        "read": int(timeouts.read_s * 1e9),
        "total": int(timeouts.total_s * 1e9),
    }
