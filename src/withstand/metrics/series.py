"""What a chart draws of a stage: distributions and courses over time, thinned to a bounded number of points.

A thinned distribution keeps its quantiles; a thinned scatter keeps its extremes.
"""

import msgspec


class Ecdf(msgspec.Struct, frozen=True):
    """Values at evenly spaced shares (both ends included): ``value_ms[i]`` is the quantile ``share[i]``."""

    share: list[float]
    value_ms: list[float]


class Scatter(msgspec.Struct, frozen=True):
    """One point a request (or a gap): seconds since the stage's start, ms."""

    at_s: list[float]
    value_ms: list[float]


class Bins(msgspec.Struct, frozen=True):
    """Counts by time; every list is as long as ``start_s``, whose steps are ``width_s``."""

    width_s: float
    start_s: list[float]
    scheduled: list[int | None]
    sent: list[int]
    completed: list[int]
    failed: list[int]
    output_tokens: list[int]
    concurrency: list[float]


class StageSeries(msgspec.Struct, frozen=True, kw_only=True):
    """The charts of one stage. Keys of the dicts are names of the catalogue: ttft, tpot, itl, e2el, response."""

    name: str
    ecdf: dict[str, Ecdf] = {}
    scatter: dict[str, Scatter] = {}
    bins: Bins | None = None
