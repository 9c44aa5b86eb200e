"""Weighted least squares, and how sure its coefficients are. Pure; a handful of columns, so nothing but sums."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

GROUPS = 20
_T_19 = 2.093
"""Student's t for 95 % and GROUPS - 1 degrees of freedom."""
_TINY = 1e-9

Point = tuple[Sequence[float], float, float]
"""(Regressors, value, weight)."""


class Sums:
    """X'WX and X'Wy."""

    def __init__(self, columns: int) -> None:
        self.square = [[0.0] * columns for _ in range(columns)]
        self.side = [0.0] * columns

    def add(self, point: Point) -> None:
        """One row."""
        terms, value, weight = point
        for i, term in enumerate(terms):
            self.side[i] += weight * term * value
            for j, other in enumerate(terms):
                self.square[i][j] += weight * term * other

    def without(self, other: "Sums") -> "Sums":
        """Of the rows that are not in ``other``."""
        rest = Sums(len(self.side))
        rest.side = [a - b for a, b in zip(self.side, other.side, strict=True)]
        rest.square = [
            [a - b for a, b in zip(r, o, strict=True)] for r, o in zip(self.square, other.square, strict=True)
        ]
        return rest

    def solved(self) -> list[float] | None:
        """Gauss and Jordan, columns scaled to 1; None = the rows cannot tell the columns apart."""
        n = len(self.side)
        scale = [math.sqrt(self.square[i][i]) for i in range(n)]
        if not all(scale):
            return None
        rows = [
            [self.square[i][j] / scale[i] / scale[j] for j in range(n)] + [self.side[i] / scale[i]] for i in range(n)
        ]
        for i in range(n):
            pivot = max(range(i, n), key=lambda row: abs(rows[row][i]))
            if abs(rows[pivot][i]) < _TINY:
                return None
            rows[i], rows[pivot] = rows[pivot], rows[i]
            rows[i] = [value / rows[i][i] for value in rows[i]]
            for other in range(n):
                if other != i:
                    factor = rows[other][i]
                    rows[other] = [a - factor * b for a, b in zip(rows[other], rows[i], strict=True)]
        return [rows[i][n] / scale[i] for i in range(n)]


class Coefficient(msgspec.Struct, frozen=True):
    """A value and its interval of 95 %."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


def fitted(points: Sequence[Point]) -> list[Coefficient] | None:
    """The coefficients; None = the rows cannot tell them apart.

    Intervals by the jackknife that leaves out one of twenty groups after another. Rows that stand together share steps,
    so a group is a stretch of them: points must come in the order of time.
    """
    if len(points) < GROUPS:
        return None
    columns = len(points[0][0])
    groups = [_sums(points[a:b], columns) for a, b in pairwise(_cuts(len(points)))]
    whole = _sums(points, columns)
    values = whole.solved()
    others = [whole.without(group).solved() for group in groups]
    if values is None:
        return None
    told = [other for other in others if other is not None]
    if len(told) < GROUPS:
        return None
    return [_coefficient(value, [other[i] for other in told]) for i, value in enumerate(values)]


def _cuts(count: int) -> list[int]:
    return [round(count * i / GROUPS) for i in range(GROUPS + 1)]


def _sums(points: Iterable[Point], columns: int) -> Sums:
    sums = Sums(columns)
    for point in points:
        sums.add(point)
    return sums


def _coefficient(value: float, others: Sequence[float]) -> Coefficient:
    mean = math.fsum(others) / len(others)
    error = math.sqrt((len(others) - 1) / len(others) * math.fsum((other - mean) ** 2 for other in others))
    return Coefficient(value, value - _T_19 * error, value + _T_19 * error)
