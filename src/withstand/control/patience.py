"""For how long each stage of a hunt is held at most: as long as it takes to be told anything at all."""

import math
from collections.abc import Sequence

from withstand.control.certainty import CHANCE
from withstand.control.tried import ALONE, Tried
from withstand.spec import LimitSearch, Promise
from withstand.spec.arrivals import SECONDS_MAX

_PROBE_S = 120.0
_ALONE_S = 30.0
_CROWD_S = 10.0
_CROWD_ANSWERS = 3.0
"""A crowd is held for so many of one user's answers at least."""
_LOADS, _PARTS_OF_BUDGET = 3, 4
_FEWEST_CROWDS = 3
_MORE = 1.5
"""Than would tell if none of them broke a promise."""


def alone_s(wanted: LimitSearch) -> float:
    """One user alone; not most of a budget."""
    budget_s = math.inf if wanted.budget_s is None else wanted.budget_s
    return min(_ALONE_S, wanted.probe_s or _ALONE_S, budget_s / _PARTS_OF_BUDGET)


def crowd_s(wanted: LimitSearch, alone: Tried) -> float:
    """A crowd."""
    duration_s = max(_CROWD_S, _CROWD_ANSWERS * (alone.e2el_s or 0.0))
    return min(duration_s, wanted.probe_s or SECONDS_MAX)


def probe_s(wanted: LimitSearch, load: float, tried: Sequence[Tried]) -> float:
    """A load: as was asked, else two minutes, less in a small budget, and longer where too few come to tell."""
    return wanted.probe_s or min(_long_enough_s(wanted, load, tried), SECONDS_MAX)


def _long_enough_s(wanted: LimitSearch, load: float, tried: Sequence[Tried]) -> float:
    enough_s = _PROBE_S if wanted.budget_s is None else min(_PROBE_S, wanted.budget_s / _PARTS_OF_BUDGET)
    if wanted.axis == "rate":
        return max(enough_s, needed(wanted.promises) / load)
    e2el_s = next((one.e2el_s for one in tried if one.stage.phase == ALONE), None)
    return max(enough_s, needed(wanted.promises) / load * (e2el_s or 0.0))


def least_budget_s(wanted: LimitSearch) -> float:
    """What leaves time for so many loads that both ends may well be found, beside one user and the crowds.

    Such a budget is shared out into quarters (see ``probe_s``): three of them for loads, the last for all else. A time
    that was given for one load is the most for one user and for a crowd, too.
    """
    longest_s = wanted.probe_s or math.inf
    crowds = _FEWEST_CROWDS if wanted.axis == "rate" and wanted.start is None else 0
    first_s = min(_ALONE_S, longest_s) + crowds * min(_CROWD_S, longest_s)
    return first_s + _LOADS * (wanted.probe_s or first_s)


def needed(promises: Sequence[Promise]) -> float:
    """Requests that tell that all are kept, if hardly any breaks one."""
    return _MORE * max(math.log(CHANCE) / math.log(promise.share) for promise in promises)
