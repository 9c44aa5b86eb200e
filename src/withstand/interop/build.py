"""Gathers one run from a file, number by number, and says no where a value cannot be what its name says.

Every reader goes through here, so that the rules are the same for all: a missing value is absent, a placeholder or a
negative time is left out with the reason, the first of two values stands and the second is remarked.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from withstand.interop import values
from withstand.interop.shape import Conditions, Facts, ImportedRun, LeftOut, Source, Stats
from withstand.interop.terms import known

LATENCIES = ("ttft", "tpot", "itl", "e2el")
_SEEN_AS_ZERO = frozenset(
    {"ttft", "tpot", "e2el", "ttft_output", "time_to_second_token", "e2el_per_token", "tpot_over_n",
     "effective_latency", "server_ttft", "server_tpot", "server_e2el"}
)  # fmt: skip
_COUNTS = frozenset(
    {"attempted", "completed", "failed", "incomplete", "total_input_tokens", "total_output_tokens",
     "retokenized_output_tokens"}
)  # fmt: skip
_TOTALS = (
    ("total_input_tokens", "input_throughput", "prompt token"),
    ("total_output_tokens", "output_throughput", "token"),
)
_MAY_BE_NEGATIVE = frozenset({"schedule_delay"})
_PERCENTILE = re.compile(r"^p\d{1,2}(\.\d+)?$|^p100$")
_MOMENTS = frozenset({"mean", "std", "min", "max"})
_SAME_WITHIN = 0.006
"""How far two values of one name may be apart: printed reports have two decimals."""


class RunBuilder:
    """One run in the making."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.numbers: dict[str, float] = {}
        self.notes: dict[str, str] = {}
        self.shown: dict[str, str] = {}
        self.facts: Facts | None = None
        self._stats: dict[str, dict[str, float]] = {}
        self._n: dict[str, int] = {}
        self._conditions: dict[str, Any] = {}
        self._labels: dict[str, str] = {}
        self._left_out: list[LeftOut] = []
        self._remarks: list[str] = []

    def number(self, name: str, value: object, scale: float = 1.0, *, said: str | None = None) -> None:
        """One number; ``said`` is its name in the file."""
        assert known(name), name
        said = said or name
        exact = self._legible(said, value)
        if exact is None:
            return
        if exact < 0:
            self.leave(said, f"it is negative ({exact:g}), which it cannot be.")
        elif name in _COUNTS and exact != int(exact):
            self.leave(said, f"a count cannot be {exact:g}.")
        else:
            self._keep_first(self.numbers, name, exact * scale, said)

    def stat(self, name: str, which: str, value: object, scale: float = 1.0, *, said: str | None = None) -> None:
        """One statistic of a metric: ``mean``, ``std``, ``min``, ``max``, ``median``, ``p99`` and the like."""
        assert known(name), name
        said = said or f"{which} {name}"
        exact = self._legible(said, value)
        which = "p50" if which == "median" else which
        if exact is None or not (which in _MOMENTS or _PERCENTILE.match(which)):
            return
        if exact < 0 and name not in _MAY_BE_NEGATIVE:
            self.leave(said, f"it is negative ({exact:g}), which it cannot be.")
        elif exact == 0 and name in _SEEN_AS_ZERO and which != "std":
            self.leave(said, "it is 0, which this tool writes where it has seen nothing; no answer takes no time.")
        else:
            self._keep_first(self._stats.setdefault(name, {}), which, exact * scale, said)

    def spread(self, name: str, stats: Mapping[str, Any], scale: float = 1.0, *, said: str | None = None) -> None:
        """A metric's statistics at once; other keys are passed over."""
        for which, value in stats.items():
            if which in _MOMENTS or which == "median" or _PERCENTILE.match(which):
                self.stat(name, which, value, scale, said=f"{said or name} {which}")

    def of(self, name: str, n: object) -> None:
        """How many values a metric's statistics are over."""
        count = values.whole(n)
        if count:
            self._n[name] = count

    def condition(self, name: str, value: object) -> None:
        """A field of ``Conditions``; what the file does not know stays unknown, and the first stands."""
        if name in {"max_concurrency", "num_prompts"}:
            value = values.whole(value)
        elif name in {"input_tokens", "output_tokens", "burstiness"}:
            value = values.measured(value)
        else:
            value = values.text(value)
        if value is not None:
            self._conditions.setdefault(name, value)

    def rate(self, value: object) -> None:
        """The asked rate: a number, or all at once."""
        if values.is_unlimited(value):
            if "request_rate" not in self._conditions:
                self._conditions.setdefault("arrivals", "inf")
            return
        exact = values.measured(value)
        if exact is not None and exact > 0:
            self._conditions.setdefault("request_rate", exact)
        elif isinstance(value, str):
            self.condition("arrivals", value)

    def ramp(self, shape: object, start: object, end: object) -> None:
        """A rate that changes during the run; tools write ``inf`` beside it."""
        low, high = values.measured(start), values.measured(end)
        if values.text(shape) and low is not None and high is not None:
            self._conditions["arrivals"] = f"{shape} ramp, {low:g} to {high:g} req/s"

    @property
    def rate_asked(self) -> float | None:
        """The asked rate so far, where it is a number."""
        rate: float | None = self._conditions.get("request_rate")
        return rate

    def label(self, name: str, value: object) -> None:
        """Something that describes the run under its own name."""
        if isinstance(value, bool | int | float):
            value = str(value)
        told = values.text(value)
        if told:
            self._labels.setdefault(name, told[:200])

    def leave(self, what: str, reason: str) -> None:
        """Not taken over, and why."""
        self._left_out.append(LeftOut(what, reason))

    def remark(self, sentence: str) -> None:
        """Something that a reader should know."""
        if sentence not in self._remarks:
            self._remarks.append(sentence)

    def note(self, names: Iterable[str], definition: str) -> None:
        """How this tool's definition departs from ours, where the name stays."""
        for name in names:
            self.notes[name] = definition

    def has(self, name: str) -> bool:
        """Whether anything stands under a name."""
        return name in self.numbers or name in self._stats

    def value(self, name: str, which: str = "mean") -> float | None:
        """A statistic that stands."""
        return self._stats.get(name, {}).get(which)

    def drop(self, name: str, reason: str) -> None:
        """Take a metric out again."""
        if self.has(name):
            self.numbers.pop(name, None)
            self._stats.pop(name, None)
            self.leave(name, reason)

    def build(self) -> ImportedRun:
        """The run."""
        self._drop_of_nobody()
        self._drop_uncounted()
        conditions = Conditions(**self._conditions, labels=self._labels)
        return ImportedRun(
            source=self.source,
            conditions=conditions,
            numbers=self.numbers,
            stats={name: self._stats_of(name) for name in self._stats},
            notes={name: note for name, note in self.notes.items() if self.has(name)},
            left_out=tuple(self._left_out),
            remarks=tuple(self._remarks),
            shown=self.shown,
            facts=self.facts,
        )

    def _drop_of_nobody(self) -> None:
        if self.numbers.get("completed") == 0:
            for name in list(self._stats):
                self.drop(name, "no request was completed: a time of nobody is unknown.")

    def _drop_uncounted(self) -> None:
        """A total of 0 beside completed requests is what tools write for tokens that they do not count."""
        completed = self.numbers.get("completed")
        for total, rate, whose in _TOTALS if completed else ():
            if self.numbers.get(total) == 0:
                for name in (total, rate, "total_token_throughput"):
                    self.drop(name, f"no {whose} was counted: 0 beside {completed:,.0f} answers.")

    def _stats_of(self, name: str) -> Stats:
        given = self._stats[name]
        completed = self.numbers.get("completed")
        n = self._n.get(name) or (int(completed) if completed and name in {"ttft", "e2el"} else None)
        moments = {which: value for which, value in given.items() if which in _MOMENTS}
        percentiles = {which: value for which, value in given.items() if which not in _MOMENTS}
        return Stats(n=n, percentiles=dict(sorted(percentiles.items(), key=_place)), **moments)

    def _legible(self, said: str, value: object) -> float | None:
        if values.is_absent(value) or isinstance(value, dict | list):
            return None
        exact = values.number(value)
        if exact is None:
            self.leave(said, _why_illegible(value))
        elif not values.measurable(exact):
            size = "large" if abs(exact) > 1 else "small"
            self.leave(said, f"no measurement is as {size} as {exact:.3g}.")
            return None
        return exact

    def _keep_first(self, kept: dict[str, float], name: str, value: float, said: str) -> None:
        first = kept.setdefault(name, value)
        if abs(first - value) > _SAME_WITHIN * max(abs(first), 1):
            self.remark(f"{said} stands twice, as {first:g} and as {value:g}; the first is taken.")


def _place(percentile: tuple[str, float]) -> float:
    return float(percentile[0][1:])


def _why_illegible(value: object) -> str:
    if isinstance(value, values.Twice):
        return f"it stands twice in the file, as {str(value.first)[:40]} and as {str(value.last)[:40]}."
    if values.is_placeholder(value):
        return f"it is a placeholder ({value}), no number."
    if values.is_unlimited(value):
        return "it is infinite, which no measurement is."
    return f"it cannot be read as a number ({str(value)[:40]!r})."
