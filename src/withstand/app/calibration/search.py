"""Which rate is tried next, in the light of those that were: up in strides, then halving what is left. Pure."""

import math
from collections.abc import Sequence

from withstand.metrics.calibration import BUSY_SHARE_MAX, Step, Verdict

_AIM = 0.85
"""Of the rate at which the CPU would be all used, as the last step has it: the cost of a token falls with the rate."""
_STRIDE_MIN, _STRIDE_MAX = 1.25, 4.0
_FINE = 1.1
"""Good and bad rates no further apart than this are the answer."""
_TRIES = 3
_LOWEST_SHARE = 1 / 16
"""Of the first rate: a client that fails even there is not searched for any further."""


def next_rate(tried: Sequence[Step], first: float) -> float | None:
    """The next one; None = the limit is known well enough, or there is none to be found."""
    if not tried:
        return first
    if _is_worth_another_try(tried):
        return tried[-1].load.rate
    good = max((s.load.rate for s in tried if s.verdict is Verdict.GOOD), default=0.0)
    bad = min((s.load.rate for s in tried if s.load.rate > good), default=None)
    if bad is None:
        return _rounded(good * _stride(tried[-1]))
    if not good:
        return _rounded(bad / 2) if bad > first * _LOWEST_SHARE else None
    between = _rounded(math.sqrt(good * bad))
    return between if bad > good * _FINE and good < between < bad else None


def _is_worth_another_try(tried: Sequence[Step]) -> bool:
    """What something else on this machine has disturbed, or may have, says little of us."""
    last = tried[-1]
    doubtful = last.verdict is Verdict.DISTURBED or (last.verdict is Verdict.CLIENT and not last.saturated)
    return doubtful and sum(s.load.rate == last.load.rate for s in tried) < _TRIES


def _stride(last: Step) -> float:
    whole = BUSY_SHARE_MAX / max(last.cpu_share, 1e-3)
    return min(max(whole * _AIM, _STRIDE_MIN), _STRIDE_MAX)


def _rounded(rate: float) -> float:
    """To two digits: more would be read as more than was measured."""
    return float(f"{rate:.2g}")
