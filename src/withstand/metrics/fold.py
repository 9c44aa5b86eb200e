"""Everything that is kept of a stage's records: what its summary, its doubts and its charts are made of.

A fold takes records in any order. Folds of parts are merged into that of the whole, so many processes may read.
"""

from collections.abc import Iterable
from typing import Self

from withstand.metrics.evidence import Evidence
from withstand.metrics.flow import Flow
from withstand.metrics.latency import Latencies, timing_if_good
from withstand.metrics.ledger import Accounts
from withstand.metrics.ranges import Ranges
from withstand.metrics.sample import Keep
from withstand.metrics.scatter import Scatters
from withstand.metrics.tally import Tally
from withstand.record import Record
from withstand.spec import Slo


class StageFold:
    """One stage."""

    def __init__(self, goodput: Slo, keep: Keep | None = None) -> None:
        self.tally = Tally(goodput)
        self.latencies = Latencies(keep)
        self.flow = Flow()
        self.evidence = Evidence()
        self.ranges = Ranges()
        self.accounts = Accounts()
        self.scatters = Scatters()

    def add(self, record: Record) -> None:
        """One request."""
        timing = timing_if_good(record)
        self.tally.add(record, timing)
        self.latencies.add(record, timing)
        self.flow.add(record)
        self.evidence.add(record, timing)
        self.ranges.add(record, timing)
        self.accounts.add(record)
        if timing is not None:
            self.scatters.add(record, timing)

    def merge(self, other: Self) -> None:
        """Other requests of the same stage."""
        self.tally.merge(other.tally)
        self.latencies.merge(other.latencies)
        self.flow.merge(other.flow)
        self.evidence.merge(other.evidence)
        self.ranges.merge(other.ranges)
        self.accounts.merge(other.accounts)
        self.scatters.merge(other.scatters)


def fold_of(records: Iterable[Record], goodput: Slo) -> StageFold:
    """That of all records of one stage."""
    fold = StageFold(goodput)
    for record in records:
        fold.add(record)
    return fold
