"""What is noted of requests that are over, on its way into the counts and the log: many at once cost less each."""

from withstand import clock
from withstand.gateway.counts import Counts, Ending
from withstand.gateway.journal import Journal, Noted
from withstand.gateway.money.bill import Charge

_AT_ONCE = 64
"""Not so many that a request would have to wait while they are written down."""
_END_S = 2.0
"""How long the log may take at the end."""


class Ledger:
    """Whoever reads the counts has it write down first what there is."""

    def __init__(self, counts: Counts, journal: Journal) -> None:
        self._counts = counts
        self._journal = journal
        self._noted: list[Noted] = []

    def add(self, ending: Ending, charge: Charge | None) -> None:
        """One more request is over; no charge where nothing is counted."""
        self._noted.append((clock.wall_s(), ending, charge))
        if len(self._noted) >= _AT_ONCE:
            self.write_down()

    def write_down(self) -> None:
        """Nothing waits any more."""
        noted, self._noted = self._noted, []
        self._counts.add([ending for _, ending, _ in noted])
        self._journal.add(noted)

    def flush(self) -> None:
        """Nor in the log."""
        self.write_down()
        self._journal.flush()

    def turn_to(self, journal: Journal) -> None:
        """Another log, from now on."""
        self.write_down()
        self._journal.close()
        self._journal = journal

    def close(self) -> None:
        """The log is complete, unless whoever takes it does not."""
        self.write_down()
        self._journal.close()
        self._journal.join(_END_S)
