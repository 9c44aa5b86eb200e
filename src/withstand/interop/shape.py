"""What an import comes to: runs with their origin, conditions, numbers, and all that was not taken over, and why.

Times are ms, rates per second, as everywhere. A number that the file does not hold is absent, never 0. Names are those
of the catalogue, or of ``terms`` where the file's definition is another one.
"""

import msgspec

from withstand.interop.values import plain
from withstand.record import Record


class Source(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a run's numbers stand."""

    file: str
    format: str
    """``vLLM JSON``, ``printed block`` …: a name of ``registry``."""
    tool: str
    """Whose client measured; ``unknown`` where the text does not tell."""
    tool_version: str | None = None
    position: str | None = None
    """Where in the file: ``line 12``, ``benchmarks[0]``."""


class Conditions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked, as far as the file tells."""

    model: str | None = None
    engine: str | None = None
    """What was measured, by its author's label; never what the client spoke."""
    backend: str | None = None
    """How the client spoke; it does not say which engine answered."""
    dataset: str | None = None
    input_tokens: float | None = None
    """Asked or mean prompt length."""
    output_tokens: float | None = None
    """Asked answer length."""
    request_rate: float | None = None
    arrivals: str | None = None
    """``inf``: all at once or as the cap allows; else the process, or None = not told."""
    burstiness: float | None = None
    max_concurrency: int | None = None
    num_prompts: int | None = None
    date: str | None = None
    labels: dict[str, str] = {}
    """Everything else that describes the run, by the names of the file."""


class Stats(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One metric over requests, in the unit of its name's definition; percentiles by ``p50``, ``p99.9``."""

    n: int | None = None
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    percentiles: dict[str, float] = {}


class LeftOut(msgspec.Struct, frozen=True):
    """Something that the file holds and that is not taken over."""

    what: str
    reason: str


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Per-request facts. Where ``starts_known`` is False each record counts from its own send: no rates from these."""

    records: tuple[Record, ...]
    starts_known: bool
    gaps_known: bool
    """False: only the first and the last event are stamped, what lies between is not known."""


class ImportedRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of one file."""

    source: Source
    conditions: Conditions = Conditions()
    numbers: dict[str, float] = {}
    """Single numbers by name: ``completed``, ``duration_s``, ``output_throughput`` …"""
    stats: dict[str, Stats] = {}
    """``ttft``, ``tpot``, ``itl``, ``e2el`` … over the good answers."""
    notes: dict[str, str] = {}
    """Name → how this tool's definition departs from ours, where the name could be kept."""
    left_out: tuple[LeftOut, ...] = ()
    remarks: tuple[str, ...] = ()
    shown: dict[str, str] = {}
    """A printed report's labels and values, as they stand."""
    facts: Facts | None = None


class Refused(msgspec.Struct, frozen=True):
    """Something that looks like a result and is none."""

    position: str
    reason: str


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One or several files."""

    runs: tuple[ImportedRun, ...]
    refused: tuple[Refused, ...] = ()

    def left_out(self, name: str) -> tuple[str, ...]:
        """Where something was refused, and why; what is a whole file is called by the name given."""
        return tuple(f"{plain(refused.position or name)}: {plain(refused.reason)}" for refused in self.refused)
