"""Requests in the order in which they were asked, as far as all of them are over.

The slow ones are not left out for being slow: what comes behind one that is missing waits for it.
"""

from collections.abc import Iterable, Iterator

from withstand.record import Record


class InOrder:
    """Ids count from 0."""

    def __init__(self) -> None:
        self._waiting: dict[int, Record] = {}
        self._next_id = 0

    def take(self, records: Iterable[Record]) -> Iterator[Record]:
        """Of these and of those before, what can be told now."""
        for record in records:
            self._waiting[record.id] = record
        while self._next_id in self._waiting:
            yield self._waiting.pop(self._next_id)
            self._next_id += 1

    def rest(self) -> list[Record]:
        """When nothing more comes: those behind the missing ones."""
        rest = [record for _, record in sorted(self._waiting.items())]
        self._waiting.clear()
        return rest
