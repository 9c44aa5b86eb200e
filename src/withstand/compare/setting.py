"""Under which conditions a run was made, and what must be equal before two runs may be compared (as in pyperf).

The load (rate, cap) names a group; everything in ``REQUIRED`` must match within it. What is not told by one side is no
difference, but said. It knows no numbers of results.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

import msgspec

_HUB_NAME = re.compile(r"^[\w-][\w.-]*/[\w.-]+$")
_LENGTH_WITHIN = 0.05
_RATE_WITHIN = 1e-6
_CHANGING = frozenset({"ramp", "step", "trace"})
"""Arrivals that have no one rate; with a cap they are still no closed loop."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, as far as it is told; None = it is not."""

    rate: float | None = None
    arrivals: str | None = None
    """``inf``, a process's name, or None."""
    concurrency: int | None = None
    burstiness: float | None = None
    num_prompts: int | None = None
    phase: str | None = None
    """A part of our own plans: the same load in another phase is another measurement."""
    model: str | None = None
    dataset: str | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    """Asked, not returned."""
    client: str | None = None
    """Whose tool measured: its definitions are part of the numbers."""
    labels: Mapping[str, str] = {}
    """Everything else that is told."""

    @property
    def load(self) -> str:
        """``5 req/s``, ``inf``, ``concurrency 8``: what a group is called."""
        parts = []
        if self.rate is not None:
            parts.append(f"{self.rate:g} req/s")
        elif self.concurrency is None or self.arrivals in _CHANGING:
            parts.append(self.arrivals if self.arrivals and self.arrivals != "unknown" else "load not told")
        if self.concurrency is not None:
            parts.append(f"concurrency {self.concurrency}")
        return ", ".join(parts)


REQUIRED: Mapping[str, str] = {
    "model": "model",
    "dataset": "dataset",
    "input_tokens": "prompt length",
    "output_tokens": "answer length",
    "arrivals": "arrival process",
    "burstiness": "burstiness",
    "num_prompts": "number of prompts",
    "client": "client",
}
"""Field → what it is called."""


def departures(one: Setting, other: Setting) -> dict[str, str]:
    """Conditions that differ though they must not: what it is → ``a against b``."""
    found = {}
    for field, title in REQUIRED.items():
        a, b = getattr(one, field), getattr(other, field)
        if a is not None and b is not None and _matters(field, one) and not _alike(field, a, b):
            found[title] = f"{_said(a)} against {_said(b)}"
    return found


def untold(one: Setting, other: Setting) -> list[str]:
    """Conditions that only one side tells."""
    fields = ("model", "dataset", "input_tokens", "output_tokens")
    return [REQUIRED[f] for f in fields if (getattr(one, f) is None) != (getattr(other, f) is None)]


def same_load(one: Setting, other: Setting) -> bool:
    """Whether both stand under one heading."""
    phases = {setting.phase for setting in (one, other) if setting.phase is not None}
    return one.load == other.load and len(phases) < 2


def shared_conditions(settings: list[Setting]) -> dict[str, str]:
    """What all tell, and tell alike."""
    found = {}
    for field, title in REQUIRED.items():
        told = {_said(value) for s in settings if (value := getattr(s, field)) is not None}
        if len(told) == 1:
            found[title] = told.pop()
    return found


def other_labels(one: Setting, other: Setting) -> dict[str, str]:
    """Labels that both have and that differ: often the very thing that is compared, so they are named, no more."""
    both = one.labels.keys() & other.labels.keys()
    return {k: f"{one.labels[k]} against {other.labels[k]}" for k in sorted(both) if one.labels[k] != other.labels[k]}


def _matters(field: str, setting: Setting) -> bool:
    """The number of prompts does where it makes the queue: all at once, without a cap."""
    return field != "num_prompts" or (setting.rate is None and setting.concurrency is None)


def _alike(field: str, a: object, b: object) -> bool:
    if isinstance(a, int | float) and isinstance(b, int | float):
        within = _LENGTH_WITHIN if field.endswith("_tokens") else _RATE_WITHIN
        return abs(a - b) <= within * max(abs(a), abs(b))
    if field == "model":
        return _same_model(str(a).casefold(), str(b).casefold())
    return str(a).casefold() == str(b).casefold()


def _same_model(a: str, b: str) -> bool:
    """``meta-llama/Llama-3.1-8B`` and ``/models/Llama-3.1-8B/`` are one model; two publishers' of one name are not."""
    if _HUB_NAME.match(a) and _HUB_NAME.match(b):
        return a == b
    return _base(a) == _base(b)


def _base(model: str) -> str:
    return PurePosixPath(model.replace("\\", "/").rstrip("/")).name


def _said(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
