"""A stage's tasks of an agent one by one, in the order of their sends: what a comparison needs beside the summary."""

import math
from array import array
from collections.abc import Mapping
from typing import Self

from withstand.metrics.agents import MEASURED, SUCCESS, measured
from withstand.metrics.latency import NS_PER_MS, Timing
from withstand.record import Record


class AgentCourses:
    """Those of one stage; whoever asked no agent has none, and pays nothing for it."""

    def __init__(self) -> None:
        self._at_ns = array("q")
        self._values = {name: array("d") for name in (SUCCESS, *MEASURED)}

    def add(self, record: Record, timing: Timing | None, at_ns: int) -> None:
        """One request, whatever became of it; ``timing`` is None unless its answer was good."""
        if record.correct is None and not record.steps:
            return
        self._at_ns.append(at_ns)
        self._values[SUCCESS].append(math.nan if record.correct is None else record.correct)
        told = measured(record) if record.steps and timing is not None else {}
        for name, in_ms in MEASURED.items():
            value = told.get(name)
            self._values[name].append(math.nan if value is None else value / NS_PER_MS if in_ms else value)

    def merge(self, other: Self) -> None:
        """Other requests of the stage."""
        self._at_ns.extend(other._at_ns)
        for name, values in self._values.items():
            values.extend(other._values[name])

    def series(self) -> Mapping[str, list[float]]:
        """By the fields of ``AgentSide``, in its units: each as far as it is known; empty without an agent."""
        order = sorted(range(len(self._at_ns)), key=self._at_ns.__getitem__)
        known = {
            name: [value for place in order if not math.isnan(value := values[place])]
            for name, values in self._values.items()
        }
        return {name: values for name, values in known.items() if values}
