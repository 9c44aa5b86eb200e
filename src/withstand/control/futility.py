"""Is it worth holding a load any longer? Not where what is left of its time will hardly make known what it does.

Stochastic curtailment (Lan, Simon and Halperin 1982): of the requests that are still to come, as many are taken to
break a promise as have done so, and some standard errors more or fewer. Where neither would tell, the load is open.
"""

import math
from collections.abc import Sequence

from withstand.control.certainty import all_kept, first_broken
from withstand.control.share import Share
from withstand.spec import Promise

_ERRORS = 2.0
"""Standard errors to either side: one load in forty lies beyond each."""
_LEAST_PART = 0.5
"""Of its time; before, nothing is foreseen, and the number that is read off the loads would be less exact."""


def is_futile(shares: Sequence[Share | None], promises: Sequence[Promise], part: float) -> bool:
    """Whether hardly anything will be known at the end of a load of whose time ``part`` is over."""
    known = [share for share in shares if share]
    if part < _LEAST_PART or len(known) < len(shares) or not all_kept([Share(0, one.of) for one in known], promises):
        return False
    worst, best = ([_at_the_end(share, part, errors) for share in known] for errors in (_ERRORS, -_ERRORS))
    return first_broken(worst, promises) is None and not all_kept(best, promises)


def _at_the_end(share: Share, part: float, errors: float) -> Share:
    """All of its requests, if the others are so many standard errors worse than those that were seen."""
    seen = (share.broken + 0.5) / (share.of + 1)
    then = min(max(seen + errors * math.sqrt(seen * (1 - seen) / share.of), 0.0), 1.0)
    of = share.of / min(part, 1.0)
    return Share(share.broken + (of - share.of) * then, of)
