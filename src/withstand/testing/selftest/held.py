"""Whether the machine held an answer up, by the server's log and by the client's waiting for a core.

What such an answer seems to say against the client proves nothing: one of the two did not have its core when it
needed it. What it says for the client holds.
"""

from collections.abc import Iterator
from typing import Final

from withstand.record import Record, Status
from withstand.testing.selftest.play import Pair
from withstand.testing.truth.served import Served

_GAVE_UP: Final = (Status.TIMEOUT, Status.CANCELLED)
_STALL_NS: Final = 1_000_000_000


def was_held(pair: Pair, longer_than_ns: float) -> bool:
    """Whether the client waited for its core at all, or either side was so late."""
    late_ns = max([*_server_late_ns(pair.served), *_client_late_ns(pair.record)], default=0)
    return pair.crowded or late_ns > longer_than_ns


def gave_up_in_a_stall(pair: Pair) -> bool:
    """The client's patience ended, but on a machine that stood still: this answer says nothing."""
    if pair.record.status not in _GAVE_UP or (pair.right and pair.right.status in _GAVE_UP):
        return False
    return was_held(pair, _STALL_NS)


def _server_late_ns(served: Served | None) -> Iterator[int]:
    """Behind its schedule, but for the writing of an event, which some behaviours draw out; and late to read."""
    if served is not None:
        yield served.late_ns_max - served.writing_ns_max
        yield served.complete_ns - served.here_ns


def _client_late_ns(record: Record) -> Iterator[int]:
    if record.ready_ns is not None and record.started_ns is not None:
        yield record.started_ns - record.ready_ns
