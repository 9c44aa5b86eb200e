"""Open files, of which every connection is one: whether the process may have more of them."""

import errno
import resource
from collections.abc import Callable

from withstand.gateway.counts import Counts
from withstand.gateway.telling import tell

_SAY_EVERY_S = 10.0
_RESERVE_MAX = 256
_NONE_LEFT = frozenset((errno.EMFILE, errno.ENFILE))


class Descriptors:
    """Says on stderr that there are too few; not at each connection, or the saying would be the next trouble."""

    def __init__(self, counts: Counts, now_s: Callable[[], float]) -> None:
        self._counts = counts
        self._now_s = now_s
        self._said_s = -_SAY_EVERY_S

    def scarce(self, descriptor: int) -> bool:
        """Whether a client's new connection is one too many: what is left then is for engines, and for saying no.

        The system gives out the smallest number that is free, so a large one means that all below are taken.
        """
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return descriptor >= most - min(_RESERVE_MAX, most // 4)

    def lack(self, error: Exception) -> bool:
        """Whether a connection was not to be had for want of them; if so it is counted."""
        lacking = isinstance(error, OSError) and error.errno in _NONE_LEFT
        if lacking:
            self.missed()
        return lacking

    def missed(self) -> None:
        """A connection was not to be had."""
        self._counts.no_descriptors += 1
        if self._now_s() - self._said_s >= _SAY_EVERY_S:
            self._said_s = self._now_s()
            tell("Too many open files for more connections; raise the limit (ulimit -n).")
