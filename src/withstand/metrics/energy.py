"""What a stage took of power: looks at GPUs and CPUs → joules between its first send and its last end. Pure.

Where a counter of energy is told, what it gained between two looks with an end of the stage between them is shared out
by the power before and after that end, as the looks beside tell it: load begins and ends at once. Else power is
integrated by trapezoids from look to look. Both need looks all over the stage: where they are missing, there is no
number, and it is said why. The energy of requests that failed is in it; tokens are those of good answers.
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
_LOOKS_MIN, _COUNTED_MIN = 3, 2
"""Within the stage, at power and at a counter: what was before and after it says nothing of it."""
_APART_NS = 500_000_000
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
    before = [point for point in points if point[0] <= span[0]]
    inner = [point for point in points if span[0] < point[0] < span[1]]
    after = [point for point in points if point[0] >= span[1]]
    falls = any(later < sooner for (_, sooner), (_, later) in pairwise(points))
    if falls or not before or not after or len(inner) < _COUNTED_MIN or _ends_unseen(points, span):
        return None
    first = _after_end(before, span[0], inner)
    last = _after_end(_mirrored(after), -span[1], _mirrored(inner))
    return first + inner[-1][1] - inner[0][1] + last


def _mirrored(points: Sequence[Point]) -> list[Point]:
    """Time and counter run backwards."""
    return [(-at_ns, -joules) for at_ns, joules in reversed(points)]


def _after_end(before: Sequence[Point], end_ns: int, after: Sequence[Point]) -> float:
    """What the counter gained from an end of the stage to the first look after it."""
    (t0, low), (t1, high) = before[-1], after[0]
    inside = (t1 - end_ns) * _power(after)
    outside = (end_ns - t0) * _power(_mirrored(before) if len(before) > 1 else after)
    if inside + outside > 0:
        return (high - low) * inside / (inside + outside)
    return (high - low) * (t1 - end_ns) / (t1 - t0)


def _power(points: Sequence[Point]) -> float:
    """From the first look to one that is far enough for their instants' own errors; joules a nanosecond."""
    first = points[0]
    other = next((point for point in points if point[0] - first[0] >= _APART_NS), points[-1])
    return (other[1] - first[1]) / (other[0] - first[0]) if other[0] > first[0] else 0.0


def integrated(points: Sequence[Point], span: Span) -> tuple[float | None, tuple[str, ...]]:
    """Watts at instants → (joules within the span by trapezoids, what is to be said of gaps).

    Beyond the first look within the stage and the last, power was as that tells: load begins and ends at once.
    """
    inner = [point for point in points if span[0] < point[0] < span[1]]
    if len(inner) < _LOOKS_MIN:
        return None, (f"{len(inner)} looks at its power within {_seconds(span):.1f} s are too few for a number",)
    gaps = list(_gaps(points, span))
    unseen_s = fsum(map(_seconds, gaps))
    notes = tuple(f"no look for {_seconds(gap):.1f} s, {_since(gap, span):.1f} s after the start" for gap in gaps)
    if unseen_s > _UNSEEN_SHARE_MAX * _seconds(span):
        return None, (*notes, f"{unseen_s:.1f} of {_seconds(span):.1f} s were not seen, so there is no number")
    course = [(span[0], inner[0][1]), *inner, (span[1], inner[-1][1])]
    return fsum((t1 - t0) / _NS_PER_S * (w0 + w1) / 2 for (t0, w0), (t1, w1) in pairwise(course)), notes


def _since(gap: Span, span: Span) -> float:
    return (gap[0] - span[0]) / _NS_PER_S


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
    """A counter must have been looked at not too long before and after each end."""
    beside = [pair for end in span for pair in _beside(points, end)]
    return any(after - before > _longest(points) for before, after in beside)


def _beside(points: Sequence[Point], instant_ns: int) -> Iterator[Span]:
    place = bisect_left(points, instant_ns, key=lambda point: point[0])
    if 0 < place < len(points):
        yield points[place - 1][0], points[place][0]
