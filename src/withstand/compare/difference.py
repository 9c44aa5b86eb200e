"""One side against the baseline: how large the difference is, how sure, and what may be said of it.

Welch's t on logarithms: over runs where they were repeated, else over one run's slow waves. A difference must be shown
*and* large enough to matter. It knows no metrics and no files.
"""

import math
from collections.abc import Sequence
from operator import sub
from statistics import NormalDist

import msgspec

from withstand.compare.dependence import root_mean_square
from withstand.compare.estimate import CONFIDENCE, TOO_FEW, Estimate, between_runs, of_runs
from withstand.compare.shape import Difference, Method, Verdict
from withstand.compare.student import point, two_sided
from withstand.metrics.summary import Interval
from withstand.metrics.welch import Mean, welch

EQUAL = "repeats that agree exactly do not tell how far chance moves them"
POWER = 0.9
_EASE = NormalDist().inv_cdf(POWER)
_PILOT_Z = NormalDist().inv_cdf(0.1)
_ALPHA = 1 - CONFIDENCE
_CURES = {
    TOO_FEW: "many more requests, or three runs of each",
    EQUAL: "runs of more requests, with their requests kept",
}
_REPEATED = {Method.REPEATS: "runs of each", Method.PAIRS: "pairs"}
_LARGEST = 1e6
_TRIES = 40
_TIMES_MAX = 1000


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two estimates of one metric, and what their difference is known by."""

    method: Method
    log_ratio: float | None
    error: float | None = None
    freedom: float = math.inf
    chance: float | None = None
    lack: str | None = None
    runs: tuple[int, int] = (1, 1)
    requests: int | None = None
    """Of the shorter side."""
    lengths_needed: float | None = None
    allowed: float | None = None
    """So much of ``log_ratio`` may be our own error; None = that is not in question, or not known."""

    def less(self, allowed: float) -> "Pair":
        """With this much of the difference laid to our own error."""
        if self.log_ratio is None or self.error is None:
            return self
        pair = msgspec.structs.replace(self, allowed=allowed)
        return msgspec.structs.replace(pair, chance=chance_of(pair.left, self.error, self.freedom))

    @property
    def left(self) -> float:
        """Of the size of ``log_ratio``, what is not laid to our own error."""
        return max(0.0, abs(self.log_ratio or 0.0) - (self.allowed or 0.0))


def pair_of(baseline: Sequence[Estimate], side: Sequence[Estimate], *, one_schedule: bool = False) -> Pair:
    """From the runs of both; one run a side where nothing was repeated.

    ``one_schedule``: both single runs sent the same requests at the same instants, so that what the schedule does to
    one it does to the other.
    """
    runs = (len(baseline), len(side))
    if not all(e.value > 0 for e in (*baseline, *side)):
        return Pair(method=Method.NONE, log_ratio=None, lack="a value is 0, so there is no ratio", runs=runs)
    if max(runs) == 1:
        return _by_waves(baseline[0], side[0], one_schedule=one_schedule)
    if min(runs) == 1:
        return _one_against_several(baseline, side)
    return _by_repeats(baseline, side)


def _by_waves(baseline: Estimate, side: Estimate, *, one_schedule: bool) -> Pair:
    log_ratio = math.log(side.value / baseline.value)
    if baseline.error is None or side.error is None:
        needed = [e.lengths_needed for e in (baseline, side) if e.lengths_needed is not None]
        return Pair(
            method=Method.BLOCKS if needed else Method.NONE,
            log_ratio=log_ratio,
            lack=baseline.lack or side.lack,
            lengths_needed=max(needed, default=None),
        )
    error, freedom = _between_waves(baseline, side) if one_schedule else _welch(baseline, side)
    chance = chance_of(log_ratio, error, freedom)
    return Pair(method=Method.BLOCKS, log_ratio=log_ratio, error=error, freedom=freedom, chance=chance)


def _between_waves(baseline: Estimate, side: Estimate) -> tuple[float, float]:
    """What the slow waves of both have in common is no difference between them."""
    waves = min(len(baseline.waves), len(side.waves))
    error = root_mean_square(list(map(sub, side.waves[:waves], baseline.waves[:waves])))
    return error, float(waves)


def _by_repeats(baseline: Sequence[Estimate], side: Sequence[Estimate]) -> Pair:
    """An error that the runs' own ones make larger has no more freedom for that."""
    one, other = of_runs(baseline), of_runs(side)
    error, freedom = _welch(one, other)
    _, between = _welch(between_runs(baseline), between_runs(side))
    return _repeated(math.log(other.value / one.value), error, min(freedom, between), (len(baseline), len(side)))


def _one_against_several(baseline: Sequence[Estimate], side: Sequence[Estimate]) -> Pair:
    """The spread of the side that was repeated stands for both; the single run is no surer than it is by itself."""
    alone, several = (baseline, of_runs(side)) if len(baseline) == 1 else (side, of_runs(baseline))
    assert several.error is not None
    spread = several.error * math.sqrt(several.freedom + 1)
    error = math.hypot(max(spread, alone[0].error or 0.0), several.error)
    values = [of_runs(e).value if len(e) > 1 else e[0].value for e in (baseline, side)]
    log_ratio = math.log(values[1] / values[0])
    return _repeated(log_ratio, error, several.freedom, (len(baseline), len(side)))


def _repeated(log_ratio: float, error: float, freedom: float, runs: tuple[int, int]) -> Pair:
    if error == 0 and log_ratio != 0:
        return Pair(method=Method.REPEATS, log_ratio=log_ratio, lack=EQUAL, runs=runs)
    chance = chance_of(log_ratio, error, freedom)
    return Pair(method=Method.REPEATS, log_ratio=log_ratio, error=error, freedom=freedom, chance=chance, runs=runs)


def _welch(baseline: Estimate, side: Estimate) -> tuple[float, float]:
    """Standard error of the difference, and its degrees of freedom."""
    assert baseline.error is not None
    assert side.error is not None
    return welch(Mean(baseline.error, baseline.freedom), Mean(side.error, side.freedom))


def chance_of(log_ratio: float, error: float, freedom: float) -> float:
    """Of a difference at least as large where there is none."""
    if error == 0:
        return 1.0 if log_ratio == 0 else 0.0
    return two_sided(abs(log_ratio) / error, freedom)


def corrected(chances: Sequence[float]) -> list[float]:
    """Holm: so that of *all* comparisons together hardly one is shown by chance."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    result = [1.0] * len(chances)
    floor = 0.0
    for place, i in enumerate(order):
        floor = max(floor, min(1.0, chances[i] * (len(chances) - place)))
        result[i] = floor
    return result


class Judge(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a difference."""

    comparisons: int
    """How many are made together, those included that a longer run would make possible."""
    negligible_percent: float
    aim_percent: float | None = None
    """The size of difference that must not be missed; None = that which was seen."""

    def difference(self, pair: Pair, chance: float | None, *, lower_is_better: bool, trusted: bool) -> Difference:
        """With its verdict; ``chance`` is the corrected one, None where there is none."""
        percent = None if pair.log_ratio is None else _percent(pair.log_ratio)
        return Difference(
            percent=percent,
            interval=_interval(pair),
            own_error_percent=_percent(pair.allowed or 0.0),
            left_percent=None if pair.log_ratio is None else _percent(math.copysign(pair.left, pair.log_ratio)),
            method=pair.method,
            chance=chance,
            verdict=self._verdict(pair, chance, lower_is_better=lower_is_better) if trusted else Verdict.UNKNOWN,
            shows_from_percent=self._shows_from(pair),
            enough=self._enough(pair, percent, chance),
        )

    def _verdict(self, pair: Pair, chance: float | None, *, lower_is_better: bool) -> Verdict:
        if pair.log_ratio is None or chance is None:
            return Verdict.UNKNOWN
        left = math.copysign(pair.left, pair.log_ratio)
        if chance > _ALPHA or abs(_percent(left)) < self.negligible_percent:
            return Verdict.NO_DIFFERENCE if pair.allowed is None else Verdict.UNKNOWN
        return Verdict.BETTER if (pair.log_ratio < 0) == lower_is_better else Verdict.WORSE

    def _reach(self, freedom: float) -> float:
        """In standard errors: what is shown with ``POWER`` against the strictest correction."""
        return point(1 - _ALPHA / max(1, self.comparisons), freedom) + _EASE

    def _shows_from(self, pair: Pair) -> float | None:
        if pair.error is None:
            return None
        least = self._reach(pair.freedom) * pair.error + (pair.allowed or 0.0)
        return max(self.negligible_percent, _percent(least))

    def _enough(self, pair: Pair, percent: float | None, chance: float | None) -> str | None:
        """None where the difference is seen, or too small to be looked for, or no length would do."""
        if pair.log_ratio is None or pair.allowed is not None:
            return None
        if pair.lengths_needed is not None:
            return _longer(pair.lengths_needed, pair.requests, "to tell anything")
        if pair.error is None:
            return _CURES.get(pair.lack or "", "three runs of each, or single runs with their requests kept")
        aim = self._aim(pair, percent, chance)
        if aim is None:
            return None
        wanted, what = math.log1p(aim / 100), f"to show {_size(aim)} %"
        if pair.method in {Method.REPEATS, Method.PAIRS}:
            runs = self.runs_needed(pair, wanted)
            return (
                f"{f'about {runs:,}' if runs <= _TIMES_MAX else f'over {_TIMES_MAX:,}'} {_REPEATED[pair.method]} {what}"
            )
        return _longer(self.lengths_needed(pair, wanted), pair.requests, what)

    def _aim(self, pair: Pair, percent: float | None, chance: float | None) -> float | None:
        """The difference that a longer measurement is for; None where there is none to look for."""
        if self.aim_percent:
            least = self._shows_from(pair)
            return self.aim_percent if least is not None and least > self.aim_percent else None
        if chance is None or chance <= _ALPHA or percent is None or abs(percent) < self.negligible_percent:
            return None
        return abs(percent)

    def lengths_needed(self, pair: Pair, wanted: float) -> float:
        """How many times as long both runs must be to show this log ratio: errors fall with the root of the length.

        A pilot's error is unsure itself; it is taken at a bound that holds in nine cases of ten.
        """
        assert pair.error is not None
        return (self._reach(pair.freedom) * pair.error / wanted) ** 2 / _least_square(pair.freedom)

    def runs_needed(self, pair: Pair, wanted: float) -> int:
        """Runs of each side, more than there are; more of them also have more freedom, in Welch's proportion."""
        assert pair.error is not None
        spread = pair.error / math.sqrt(sum(1 / runs for runs in pair.runs))
        proportion = pair.freedom / (sum(pair.runs) - 2)
        runs = max(pair.runs) + 1
        for _ in range(_TRIES):
            needed = 2 * (self._reach(proportion * 2 * (runs - 1)) * spread / wanted) ** 2
            if needed <= runs:
                break
            runs = max(runs + 1, math.ceil((runs + needed) / 2)) if needed > runs + 1 else runs + 1
        return runs


def _least_square(freedom: float) -> float:
    """What chi-squared over its freedom falls below in a tenth of all cases (Wilson and Hilferty)."""
    ninth = 2 / (9 * freedom)
    return (1 - ninth + _PILOT_Z * math.sqrt(ninth)) ** 3


def _interval(pair: Pair) -> Interval | None:
    if pair.error is None or pair.log_ratio is None:
        return None
    half = point(CONFIDENCE, pair.freedom) * pair.error + (pair.allowed or 0.0)
    return Interval(low=_percent(pair.log_ratio - half), high=_percent(pair.log_ratio + half))


def _percent(log_ratio: float) -> float:
    return 100 * math.expm1(min(log_ratio, math.log(_LARGEST)))


def _longer(times: float, requests: int | None, what: str) -> str:
    if times > _TIMES_MAX:
        return f"over {_TIMES_MAX:,} times as long {what}"
    told = f" ({_rounded(times * requests):,} requests)" if requests else ""
    return f"{_rounded(times * 10) / 10:g} times as long{told} {what}"


def _size(percent: float) -> str:
    """Two digits, or all of the whole ones."""
    return f"{percent:,.0f}" if percent >= 100 else f"{percent:.2g}"


def _rounded(n: float) -> int:
    """Up, to two digits."""
    unit = 10 ** max(0, math.floor(math.log10(n)) - 1) if n >= 1 else 1
    return math.ceil(n / unit) * unit
