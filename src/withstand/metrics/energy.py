"""What a stage took of power: looks at GPUs and CPUs → joules between its first send and its last end. Pure.

Where a counter of energy is told, it is read at both ends, on a line between the looks beside them. Else power is
integrated by trapezoids from look to look. Both need looks that lie about the whole stage: where they do not, there is
no number, and it is said why. The energy of requests that failed is in it; tokens are those of good answers.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import fsum
from statistics import median

import msgspec

from withstand.metrics.gpus import in_use, serving
from withstand.record import HOST, Sample, Seen

_NS_PER_S = 1e9
_J_PER_KWH = 3.6e6
_MILLION = 1e6
_GAP_FACTOR = 3.0
_GAP_NS_MIN = 3_000_000_000
"""Looks that are farther apart than this, and than three times what is usual, have a gap between them."""
_UNSEEN_SHARE_MAX = 0.05
_LOOKS_MIN = 3
"""Within the stage: what power was before and after it says nothing of it."""
Point = tuple[int, float]
Span = tuple[int, int]


class Energy(msgspec.Struct, frozen=True, kw_only=True):
    """Of one stage. None = not known."""

    gpus: int
    """Those in use, which alone count."""
    gpus_seen: int
    joules: float | None = None
    """Of all of them together."""
    mean_watts: float | None = None
    by: str | None = None
    """``counter``, or ``power`` where any GPU tells of no more."""
    per_output_token_j: float | None = None
    per_request_j: float | None = None
    kwh_per_million_output: float | None = None
    cpu_joules: float | None = None
    """Of the CPU packages of the machine that serves and sends; not in the numbers above."""
    cpu_per_output_token_j: float | None = None
    notes: tuple[str, ...] = ()
    """Gaps between looks, and why there is no number."""


class Work(msgspec.Struct, frozen=True):
    """What was made of it, between two instants of the run's clock."""

    span: Span
    output_tokens: int | None
    answers: int


def energy_of(samples: Sequence[Sample], work: Work, *, beside_server: bool) -> Energy | None:
    """None where nobody tells of any power."""
    gpus = serving(samples, beside_server=beside_server)
    used = in_use(gpus)
    cpu = counted(_points(samples, HOST, Seen.CPU_JOULES), work.span) if beside_server else None
    if not used and cpu is None:
        return None
    found = {name: _of_gpu(gpus[name], name, work.span) for name in used}
    told = [one.joules for one in found.values()]
    joules = fsum(j for j in told if j is not None) if told and None not in told else None
    return Energy(
        gpus=len(used),
        gpus_seen=len(gpus),
        joules=joules,
        mean_watts=None if joules is None else joules / _seconds(work.span),
        by=_by([one.by for one in found.values()]) if joules is not None else None,
        per_output_token_j=_each(joules, work.output_tokens),
        per_request_j=_each(joules, work.answers),
        kwh_per_million_output=_kwh(_each(joules, work.output_tokens)),
        cpu_joules=cpu,
        cpu_per_output_token_j=_each(cpu, work.output_tokens),
        notes=tuple(note for one in found.values() for note in one.notes),
    )


def _seconds(span: Span) -> float:
    return (span[1] - span[0]) / _NS_PER_S


def _each(joules: float | None, count: int | None) -> float | None:
    return joules / count if joules is not None and count else None


def _kwh(joules_per_token: float | None) -> float | None:
    return None if joules_per_token is None else joules_per_token * _MILLION / _J_PER_KWH


def _by(kinds: Sequence[str]) -> str:
    return "power" if "power" in kinds else "counter"


class _Took(msgspec.Struct, frozen=True):
    """What one GPU took."""

    joules: float | None
    by: str
    notes: tuple[str, ...]


def _of_gpu(looks: Sequence[Sample], name: str, span: Span) -> _Took:
    """By its counter, if that is told about the whole stage; else by its power."""
    told = counted(_points(looks, name, Seen.GPU_JOULES), span)
    if told is not None:
        return _Took(told, "counter", ())
    joules, notes = integrated(_points(looks, name, Seen.GPU_WATTS), span)
    return _Took(joules, "power", tuple(f"{name}: {note}" for note in notes))


def _points(samples: Sequence[Sample], source: str, seen: Seen) -> list[Point]:
    return [(s.at_ns, s.values[seen]) for s in samples if s.source == source and seen in s.values]


def counted(points: Sequence[Point], span: Span) -> float | None:
    """The counter's difference; a gap in the midst does not matter, for it counts on. It must never fall."""
    if _ends_unseen(points, span) or any(after < before for (_, before), (_, after) in pairwise(points)):
        return None
    return at(points, span[1]) - at(points, span[0])


def integrated(points: Sequence[Point], span: Span) -> tuple[float | None, tuple[str, ...]]:
    """Watts at instants → (joules within the span by trapezoids, what is to be said of gaps).

    Where looks begin a little late or end a little early, the nearest stands for what lies beyond.
    """
    inner = [point for point in points if span[0] < point[0] < span[1]]
    if len(inner) < _LOOKS_MIN:
        return None, (f"{len(inner)} looks at its power within {_seconds(span):.1f} s are too few for a number",)
    gaps = list(_gaps(points, span))
    unseen_s = fsum(map(_seconds, gaps))
    notes = tuple(f"no look for {_seconds(gap):.1f} s, {_since(gap, span):.1f} s after the start" for gap in gaps)
    if unseen_s > _UNSEEN_SHARE_MAX * _seconds(span):
        return None, (*notes, f"{unseen_s:.1f} of {_seconds(span):.1f} s were not seen, so there is no number")
    course = [(span[0], at(points, span[0])), *inner, (span[1], at(points, span[1]))]
    return fsum((t1 - t0) / _NS_PER_S * (w0 + w1) / 2 for (t0, w0), (t1, w1) in pairwise(course)), notes


def _since(gap: Span, span: Span) -> float:
    return (gap[0] - span[0]) / _NS_PER_S


def at(points: Sequence[Point], instant_ns: int) -> float:
    """On a line between the points beside an instant; beyond the first or the last, as that is."""
    place = bisect_left(points, instant_ns, key=lambda point: point[0])
    if place in {0, len(points)}:
        return points[min(place, len(points) - 1)][1]
    (t0, low), (t1, high) = points[place - 1 : place + 1]
    return low + (high - low) * (instant_ns - t0) / (t1 - t0)


def _longest(points: Sequence[Point]) -> float:
    """The time without a look that is no gap yet."""
    steps = [after - before for (before, _), (after, _) in pairwise(points)]
    return max(_GAP_NS_MIN, _GAP_FACTOR * median(steps)) if steps else _GAP_NS_MIN


def _gaps(points: Sequence[Point], span: Span) -> Iterator[Span]:
    """What of the span lies between looks that are too far apart, or too far from the first or the last of them."""
    longest = _longest(points)
    instants = [point[0] for point in points]
    edges = [(span[0], instants[0]), *pairwise(instants), (instants[-1], span[1])]
    for begin, end in edges:
        within = (max(begin, span[0]), min(end, span[1]))
        if end - begin > longest and within[1] > within[0]:
            yield within


def _ends_unseen(points: Sequence[Point], span: Span) -> bool:
    """A counter must have been looked at before the begin and after the end, neither too long away."""
    if len(points) < 2 or points[0][0] > span[0] or points[-1][0] < span[1]:
        return True
    beside = [pair for end in span for pair in _beside(points, end)]
    return any(after - before > _longest(points) for before, after in beside)


def _beside(points: Sequence[Point], instant_ns: int) -> Iterator[Span]:
    place = bisect_left(points, instant_ns, key=lambda point: point[0])
    if 0 < place < len(points):
        yield points[place - 1][0], points[place][0]
