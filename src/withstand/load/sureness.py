"""Which events of a connection's answers have a stamp that may be that of something behind them. Pure."""

from withstand.wire import Reply


class Sureness:
    """What is unsure stands in the Reply, with the earliest instant at which it may have come."""

    __slots__ = ("_count", "_since_ns")

    def __init__(self) -> None:
        self._count, self._since_ns = 0, 0
        """How many events there were when the last of a late read was thought sure, and since when it may be here."""

    def read_late(self, reply: Reply, events: int, since_ns: int, *, ended: bool) -> None:
        """Of several pieces that were read late and together, the stamp is that of the last.

        ``ended``: nothing has come behind the last event, as far as is known. None came before ``since_ns``.
        """
        end = len(reply.chunk_ns)
        sure = ended and not reply.trailed
        found = range(end - events, end - sure)
        reply.unsure.extend(found)
        reply.unsure_since_ns.extend([since_ns] * len(found))
        if sure:
            self._count, self._since_ns = end, since_ns

    def connection_ended(self, reply: Reply, began_ns: int, *, chunked: bool) -> None:
        """The kernel puts a connection's end to the bytes before it, and the later stamp is that of both.

        Behind a chunk the end is a break, and all that a broken answer loses by this is the gap before its last event.
        """
        last = len(reply.chunk_ns) - 1
        if last < 0 or reply.unsure[-1:] == [last]:
            return
        if chunked or self._count == last + 1:
            reply.unsure.append(last)
            reply.unsure_since_ns.append(began_ns if chunked else self._since_ns)
