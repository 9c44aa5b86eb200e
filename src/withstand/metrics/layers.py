"""What each layer of a stack costs: the mean E2EL of good answers, in parts that add up to it. Pure.

A layer tells its own time in the answer's Server-Timing header (``hop``, ``queue`` and ``cold`` are the gateway's); an
engine may tell its prefill at the answer's end. Else the engine's queue and prefill are means by its own metrics, and
count only where those are of the same answers. Decode is what was heard, first token to last; an agent's is that of its
model's calls, as it tells. What nobody has told is ``else``: the network, HTTP, and parts that do not fit.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Final, Self

import msgspec

from withstand.metrics.latency import NS_PER_MS, Timing, last_token_ns
from withstand.metrics.server import ServerSide
from withstand.record import Record

_TOLD: Final[Mapping[str, str]] = {
    "edge": "edge",
    "agent": "agent",
    "tool": "tools",
    "cold": "cold start",
    "queue": "gateway queue",
    "hop": "gateway",
    "prefill": "prefill",
}
"""Server-Timing's name → layer; ``engine`` and ``decode`` tell until the head, which an engine may send at once."""
_ENTRY = re.compile(r"([!#$%&'*+.^_`|~\w-]+)\s*((?:;[^,;]*)*)")
_DURATION = re.compile(r";\s*dur\s*=\s*\"?([0-9.]+)")
_EDGE_WHOLE, _EDGE_BEHIND = "edge-whole", "edge-behind"
_MODEL = "model"
_COUNTS_APART = 0.02
_OVERRUN = 0.1
"""By so much of itself a part may be larger than its room: its clock is another's, and began elsewhere."""
_COLD, _QUEUE, _PREFILL = "cold", "queue", "prefill"
_LAYERS: tuple[str, ...] = (
    *("edge", "agent", "tools", "cold start", "gateway queue", "gateway", "engine queue", "prefill", "decode"),
)
ELSE = "else"


class Layer(msgspec.Struct, frozen=True):
    """One of them: its part of the mean E2EL, in ms and as a share of it."""

    name: str
    mean_ms: float
    share: float


class Layers(msgspec.Struct, frozen=True):
    """All that are known, and ``else``; their sum is ``e2el_mean_ms``."""

    e2el_mean_ms: float
    parts: tuple[Layer, ...]

    def part(self, name: str) -> Layer | None:
        """None = not known."""
        return next((part for part in self.parts if part.name == name), None)


def durations_ms(header: str) -> dict[str, float]:
    """Of a Server-Timing header: name → ``dur``, summed where a name comes twice."""
    found: dict[str, float] = {}
    for name, rest in _ENTRY.findall(header):
        duration = _DURATION.search(rest)
        if duration and (value := _number(duration[1])) is not None:
            found[name.lower()] = found.get(name.lower(), 0.0) + value
    return found


def _all_told(record: Record) -> dict[str, float]:
    """By the answer's header and end, and by headers that an agent had of its model's server; of these the sum."""
    found = _own(durations_ms(record.server_timing)) if record.server_timing else {}
    if record.prefill_ns is not None:
        found.setdefault(_PREFILL, record.prefill_ns / NS_PER_MS)
    for step in record.steps:
        for name, ms in durations_ms(step.server_timing or "").items():
            found[name] = found.get(name, 0.0) + ms
    return found


def _until_decode_ns(record: Record, e2el_ns: int, ttft_ns: int | None) -> int:
    """All but decode. An agent's model decodes several times, and mostly unheard: it tells how long.

    What it decodes may end unheard too, as a schema's last braces do: that time is not in E2EL, which ends with the
    last token heard.
    """
    calls = [step for step in record.steps if step.kind == _MODEL]
    if not calls:
        return e2el_ns if ttft_ns is None else ttft_ns
    decode_ns = sum(s.took_ns - s.ttft_ns for s in calls if s.took_ns is not None and s.ttft_ns is not None)
    return min(e2el_ns, max(0, e2el_ns + _unheard_ns(record) - decode_ns))


def _unheard_ns(record: Record) -> int:
    """From the last token heard to the answer's end."""
    last_ns = last_token_ns(record)
    return 0 if last_ns is None or record.end_ns is None else max(0, record.end_ns - last_ns)


def _fitting_ms(part_ms: float, room_ms: float) -> float | None:
    """A part that is a little too large for what is left fills it; one that is far too large is not of this answer."""
    return min(part_ms, room_ms) if part_ms - room_ms <= _OVERRUN * part_ms else None


def _own(told: dict[str, float]) -> dict[str, float]:
    """Nginx cannot subtract: it tells how long it had the request, and how long it waited for what is behind.

    Who waits for an engine's start does so in the gateway's queue.
    """
    if _COLD in told and _QUEUE in told:
        told = told | {_QUEUE: max(0.0, told[_QUEUE] - told[_COLD])}
    whole_ms, behind_ms = told.get(_EDGE_WHOLE), told.get(_EDGE_BEHIND)
    if whole_ms is None or behind_ms is None:
        return told
    return {"edge": max(0.0, whole_ms - behind_ms), **told}


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


class LayerSums:
    """Over a stage's good answers, in ms. Sums, so that those of parts can be added."""

    def __init__(self) -> None:
        self.answers = 0
        self.calls = 0
        """Of the engine: an agent's answer may take several."""
        self.told = 0
        """Answers that said something of layers."""
        self.started = 0
        """Answers that waited for an engine's start."""
        self.e2el_ms = 0.0
        self.first_ms = 0.0
        """Until the first token; until the end where none was heard by itself."""
        self.decode_ms = 0.0
        self.layers_ms: dict[str, float] = {}

    def add(self, record: Record, timing: Timing | None) -> None:
        """One request; only good answers count."""
        if timing is None or timing.e2el_ns is None:
            return
        first_ns = _until_decode_ns(record, timing.e2el_ns, timing.ttft_ns)
        self.answers += 1
        self.calls += sum(step.kind == _MODEL for step in record.steps) or 1
        self.e2el_ms += timing.e2el_ns / NS_PER_MS
        self.first_ms += first_ns / NS_PER_MS
        self.decode_ms += (timing.e2el_ns - first_ns) / NS_PER_MS
        room_ms = first_ns / NS_PER_MS
        told = _all_told(record)
        self.told += bool(told)
        self.started += _COLD in told
        for name, layer in _TOLD.items():
            if name in told and (part_ms := _fitting_ms(told[name], room_ms)) is not None:
                room_ms -= part_ms
                self.layers_ms[layer] = self.layers_ms.get(layer, 0.0) + part_ms

    def merge(self, other: Self) -> None:
        """Those of other answers."""
        self.answers += other.answers
        self.calls += other.calls
        self.told += other.told
        self.started += other.started
        self.e2el_ms += other.e2el_ms
        self.first_ms += other.first_ms
        self.decode_ms += other.decode_ms
        for layer, part_ms in other.layers_ms.items():
            self.layers_ms[layer] = self.layers_ms.get(layer, 0.0) + part_ms


def layers_of(sums: LayerSums, server: ServerSide | None, attempted: int) -> Layers | None:
    """None where no layer has told anything: then there is nothing but TTFT and decode, which stand elsewhere."""
    if not sums.answers or not sums.e2el_ms:
        return None
    known = {layer: part_ms / sums.answers for layer, part_ms in sums.layers_ms.items()}
    room_ms = sums.first_ms / sums.answers - math.fsum(known.values())
    calls = sums.calls / sums.answers
    for layer, call_ms in _by_metrics(server, attempted * calls):
        part_ms = _fitting_ms(call_ms * calls, room_ms)
        if layer not in known and part_ms is not None:
            known[layer] = part_ms
            room_ms -= part_ms
    if not known:
        return None
    whole_ms = sums.e2el_ms / sums.answers
    if sums.decode_ms:
        known["decode"] = sums.decode_ms / sums.answers
    parts = [(name, known[name]) for name in _LAYERS if name in known]
    parts.append((ELSE, max(0.0, whole_ms - math.fsum(known.values()))))
    return Layers(whole_ms, tuple(Layer(name, part_ms, part_ms / whole_ms) for name, part_ms in parts))


def _by_metrics(server: ServerSide | None, attempted: float) -> Iterator[tuple[str, float]]:
    """Means over the answers that the engine has counted: as many as were asked, or they are not of the same."""
    if server is None or not server.whole or server.answered is None:
        return
    if abs(server.answered - attempted) > _COUNTS_APART * attempted:
        return
    if server.queue_mean_ms is not None:
        yield "engine queue", server.queue_mean_ms
    if server.prefill_mean_ms is not None:
        yield "prefill", server.prefill_mean_ms
