"""When requests are due: ns since the stage's start, an endless or finite stream. Nothing here waits.

Times are sums of seconds in double precision, turned into ns at the end: a million requests on, the error is below a
microsecond. The draw is left as it is: N requests take what they take, not N / rate.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from random import Random

from withstand.errors import SpecError
from withstand.spec import Arrivals, Constant, Gamma, Inf, Poisson, Ramp, Step, Trace

Area = Callable[[float], float | None]
"""Expected number of arrivals → the second by which they have come; None = they never will."""


def due_times_ns(arrivals: Arrivals, seed: str) -> Iterator[int]:
    """The due time of each request, never decreasing.

    Raises:
        SpecError: the times are the dataset's own (``trace``).
    """
    if isinstance(arrivals, Trace):
        raise SpecError("arrivals.kind: `trace` needs a dataset with times of its own, such as azure-trace.")
    if isinstance(arrivals, Inf):
        return itertools.repeat(0)
    random = Random(f"{seed}/arrivals")
    return (round(second * 1e9) for second in _seconds(arrivals, random))


def _seconds(arrivals: Constant | Poisson | Gamma | Ramp | Step, random: Random) -> Iterator[float]:
    if isinstance(arrivals, Constant):
        return (i / arrivals.rate for i in itertools.count())
    if isinstance(arrivals, Poisson):
        return itertools.accumulate(random.expovariate(arrivals.rate) for _ in itertools.count())
    if isinstance(arrivals, Gamma):
        scale = 1 / (arrivals.rate * arrivals.burstiness)
        return itertools.accumulate(random.gammavariate(arrivals.burstiness, scale) for _ in itertools.count())
    area = _ramp_inverse(arrivals) if isinstance(arrivals, Ramp) else _step_inverse(arrivals)
    return _inverted(area, random if arrivals.poisson else None)


def _inverted(when: Area, random: Random | None) -> Iterator[float]:
    """Arrivals of a varying rate: a unit process (Poisson, or even) on the rate's integral, read backwards."""
    for unit in _units(random):
        second = when(unit)
        if second is None:
            return
        yield second


def _units(random: Random | None) -> Iterator[float]:
    """A process of rate 1."""
    if random is None:
        return map(float, itertools.count())
    return itertools.accumulate(random.expovariate(1) for _ in itertools.count())


def _ramp_inverse(ramp: Ramp) -> Area:
    """Of R(t) = integral of the rate; behind the ramp the end's rate stays."""
    start, end, length = ramp.start_rate, ramp.end_rate, ramp.duration_s
    if ramp.shape == "exponential" and start <= 0:
        raise SpecError("An exponential ramp cannot begin at rate 0 - at `$.arrivals.start_rate`.")
    growth = math.log(end / start) / length if ramp.shape == "exponential" and end != start else 0.0
    whole = (end - start) / growth if growth else (start + end) / 2 * length

    def when(area: float) -> float:
        if area >= whole:
            return length + (area - whole) / end
        if growth:
            return math.log1p(area * growth / start) / growth
        slope = (end - start) / length
        return area / start if not slope else 2 * area / (start + math.sqrt(start * start + 2 * slope * area))

    return when


def _step_inverse(step: Step) -> Area:
    """Plateau after plateau; behind the last nothing comes."""

    def when(area: float) -> float | None:
        second = 0.0
        for part in step.parts:
            here = part.rate * part.duration_s
            if area < here:
                return second + area / part.rate
            area -= here
            second += part.duration_s
        return None

    return when
