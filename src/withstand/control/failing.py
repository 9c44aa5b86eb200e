"""Is it sure that more than a share of the requests fail? A test that may look as often as it likes.

How many times as likely is what was seen if a larger share fails (any of them as likely as another) as if just that
share did? Where no more than that fail, this ratio is a supermartingale that begins at 1: it ever gets to 1 / CHANCE
with a chance of ``CHANCE`` at most (Ville 1939). For failures that come one by one; an outage at a stage's start is a
lump of them, and may end it.
"""

import math
from collections.abc import Iterable

from withstand.compare.student import beta_share
from withstand.control.kept import broken
from withstand.record import Record
from withstand.spec import Promise

CHANCE = 0.001


def ratio(failed: int, asked: int, share: float) -> float:
    """Its natural logarithm. The mean over all larger shares is an integral of Beta's density."""
    good = asked - failed
    tail = beta_share(1 - share, good + 1, failed + 1)
    if tail <= 0:
        return -math.inf
    larger = math.lgamma(failed + 1) + math.lgamma(good + 1) - math.lgamma(asked + 2) + math.log(tail / (1 - share))
    return larger - failed * math.log(share) - good * math.log(1 - share)


class Failing:
    """Counts in the order in which requests were asked: what is still on its way is taken for good.

    So nothing is concluded from failures being quicker than answers.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._success = Promise(metric="success", share=max(1 - share, 1e-9))
        self.failed = 0
        self.asked = 0
        self._passed_over = 0

    def feed(self, records: Iterable[Record]) -> None:
        """Requests that are over, in any order; their ids count from 0."""
        highest = self.asked + self._passed_over - 1
        for record in records:
            failed, counted = broken(record, self._success)
            self.failed += failed
            self._passed_over += not counted
            highest = max(highest, record.id)
        self.asked = highest + 1 - self._passed_over

    def is_sure(self) -> bool:
        """Whether more than the share fail."""
        if self._share >= 1 or self.failed <= self._share * self.asked:
            return False
        return ratio(self.failed, self.asked, self._share) >= -math.log(CHANCE)
