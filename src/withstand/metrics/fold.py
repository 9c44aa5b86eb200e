"""Everything that is kept of a stage's records: what its summary and its doubts are made of, and more where asked for.

A fold takes records in any order. Folds of parts are merged into that of the whole, so many processes may read.
"""

from collections.abc import Iterable
from typing import Self

import msgspec

from withstand.metrics.agents import Agents
from withstand.metrics.courses import Courses
from withstand.metrics.evidence import Evidence
from withstand.metrics.flow import Flow
from withstand.metrics.latency import Latencies, timing_if_good
from withstand.metrics.layers import LayerSums
from withstand.metrics.ledger import Accounts
from withstand.metrics.ranges import Ranges
from withstand.metrics.sample import Keep
from withstand.metrics.scatter import Scatters
from withstand.metrics.tally import Tally
from withstand.record import Record
from withstand.spec import Slo


class Besides(msgspec.Struct, frozen=True):
    """What is kept only where somebody will look at it."""

    charts: bool = False
    courses: bool = False
    """For a comparison."""


NOTHING = Besides()


class StageFold:
    """One stage."""

    def __init__(self, goodput: Slo, keep: Keep | None = None, besides: Besides = NOTHING) -> None:
        self.tally = Tally(goodput)
        self.latencies = Latencies(keep)
        self.flow = Flow()
        self.evidence = Evidence()
        self.ranges = Ranges()
        self.accounts = Accounts()
        self.agents = Agents()
        self.layers = LayerSums()
        self.scatters = Scatters() if besides.charts else None
        self.courses = Courses(keep) if besides.courses else None

    def add(self, record: Record) -> None:
        """One request."""
        timing = timing_if_good(record)
        self.tally.add(record, timing)
        self.latencies.add(record, timing)
        self.flow.add(record)
        self.evidence.add(record, timing)
        self.ranges.add(record, timing)
        self.accounts.add(record)
        self.agents.add(record, timing)
        self.layers.add(record, timing)
        if self.scatters is not None and timing is not None:
            self.scatters.add(record, timing)
        if self.courses is not None:
            self.courses.add(record, timing)

    def merge(self, other: Self) -> None:
        """Other requests of the same stage, of which as much is kept."""
        self.tally.merge(other.tally)
        self.latencies.merge(other.latencies)
        self.flow.merge(other.flow)
        self.evidence.merge(other.evidence)
        self.ranges.merge(other.ranges)
        self.accounts.merge(other.accounts)
        self.agents.merge(other.agents)
        self.layers.merge(other.layers)
        if self.scatters is not None and other.scatters is not None:
            self.scatters.merge(other.scatters)
        if self.courses is not None and other.courses is not None:
            self.courses.merge(other.courses)


def fold_of(records: Iterable[Record], goodput: Slo, besides: Besides = NOTHING) -> StageFold:
    """That of all records of one stage."""
    fold = StageFold(goodput, besides=besides)
    for record in records:
        fold.add(record)
    return fold
