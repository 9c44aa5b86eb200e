"""The server's side of a stage: its samples → levels, differences of counters, courses. Pure.

A level is of the looks within the stage. A counter's difference is from the last look before the stage to the first
after it: the run has everything looked at then. Where one falls, the server was started anew, and nothing is known.
Means of times are the server's own: sums over counts, so there is nothing but a mean.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from math import fsum
from statistics import fmean, median
from typing import Any

import msgspec

from withstand.metrics.gpus import GPU_SEEN, in_use, serving
from withstand.record import Sample, Seen

_NS_PER_S = 1_000_000_000
_NEAR_NS = 3 * _NS_PER_S
"""A look is just before the stage, or just after it."""
_COURSE_MAX = 240
_Point = tuple[int, float]


class Watched(msgspec.Struct, frozen=True):
    """What was seen around a stage, which lasted from one instant of the run's clock to the other."""

    samples: tuple[Sample, ...]
    started_ns: int
    ended_ns: int
    beside_server: bool = True
    """This machine is the server's too, so its GPUs may be."""


class Level(msgspec.Struct, frozen=True):
    """How high something stood."""

    p50: float
    max: float


class ServerSide(msgspec.Struct, frozen=True, kw_only=True):
    """Of one stage; several addresses are put together. None = nobody has told."""

    engines: tuple[str, ...] = ()
    addresses: int = 0
    """Of engines that told something; a gateway is none."""
    looks: int = 0
    """At the engine, within the stage."""
    running: Level | None = None
    waiting: Level | None = None
    in_engine: Level | None = None
    """Running and waiting together."""
    kv_share: Level | None = None
    prefix_queries: int | None = None
    """Prompt tokens that were looked up in the prefix cache, and those found."""
    prefix_hits: int | None = None
    prefix_share: float | None = None
    preemptions: int | None = None
    answered: int | None = None
    """First tokens that the server has counted."""
    whole: bool = False
    """The counters' differences are of the whole stage."""
    ttft_mean_ms: float | None = None
    """By the server's clock; the next two are parts of it."""
    queue_mean_ms: float | None = None
    prefill_mean_ms: float | None = None
    transfers: int | None = None
    """KV caches that came from another engine, how long one took, and the bytes of all."""
    transfer_mean_ms: float | None = None
    transfer_bytes: int | None = None
    transfers_failed: int | None = None
    passing: Level | None = None
    """Requests under way through a gateway, and those of them that wait there."""
    held: Level | None = None
    hop_mean_ms: float | None = None
    """In a gateway alone, of a request."""
    cpu_share: Level | None = None
    """Of the machine that sent."""
    memory_available_bytes_min: int | None = None
    gpu_share: Level | None = None
    gpu_memory_share: Level | None = None
    gpu_watts: Level | None = None
    """Of all GPUs together."""
    gpus: int | None = None
    """How many serve, and are in use."""


class Course(msgspec.Struct, frozen=True):
    """A line over time: seconds since the stage began."""

    at_s: list[float]
    value: list[float]


_Together = Callable[[Sequence[float]], float]
_GAUGES: Mapping[str, tuple[Seen, _Together]] = {
    "running": (Seen.RUNNING, fsum),
    "waiting": (Seen.WAITING, fsum),
    "kv_share": (Seen.KV_SHARE, fmean),
    "passing": (Seen.PASSING, fsum),
    "held": (Seen.HELD, fsum),
    "cpu_share": (Seen.CPU_SHARE, fmean),
    "gpu_share": (Seen.GPU_SHARE, fmean),
    "gpu_memory_share": (Seen.GPU_MEMORY_SHARE, fmean),
    "gpu_watts": (Seen.GPU_WATTS, fsum),
}


def server_side(watched: Watched) -> ServerSide | None:
    """None where nothing was seen."""
    if not watched.samples:
        return None
    engine_looks = [s for s in _within(watched) if s.engine]
    levels: dict[str, Any] = {name: _level(_gauge(watched, *of)) for name, of in _GAUGES.items()}
    counters = {seen: _gained(watched, seen) for seen in _COUNTERS}
    memory = [
        s.values[Seen.MEMORY_AVAILABLE_BYTES] for s in _within(watched) if Seen.MEMORY_AVAILABLE_BYTES in s.values
    ]
    return ServerSide(
        engines=tuple(sorted({s.engine for s in watched.samples if s.engine})),
        addresses=len({s.source for s in watched.samples if s.engine and Seen.PASSING not in s.values}),
        looks=len({s.at_ns for s in engine_looks}),
        in_engine=_level(_in_engine(watched)),
        **levels,
        **_prefix(watched, counters),
        preemptions=_whole(counters[Seen.PREEMPTIONS]),
        answered=_whole(counters[Seen.ANSWERED]),
        whole=_is_enclosed(watched),
        ttft_mean_ms=_mean_ms(counters[Seen.TTFT_S], counters[Seen.ANSWERED]),
        queue_mean_ms=_mean_ms(counters[Seen.QUEUE_S], counters[Seen.QUEUED]),
        prefill_mean_ms=_mean_ms(counters[Seen.PREFILL_S], counters[Seen.PREFILLED]),
        transfers=_whole(counters[Seen.TRANSFERS]),
        transfer_mean_ms=_mean_ms(counters[Seen.TRANSFER_S], counters[Seen.TRANSFERS]),
        transfer_bytes=_whole(counters[Seen.TRANSFER_BYTES]),
        transfers_failed=_whole(counters[Seen.TRANSFERS_FAILED]),
        hop_mean_ms=_mean_ms(counters[Seen.HOP_S], counters[Seen.HOPPED]),
        memory_available_bytes_min=int(min(memory)) if memory else None,
        gpus=_gpus(watched),
    )


def server_courses(watched: Watched, origin_ns: int) -> dict[str, Course]:
    """The lines of a chart, by the names of the levels; and ``prefix_share`` and ``preemptions`` from look to look."""
    lines = {name: _gauge(watched, *of) for name, of in _GAUGES.items()}
    lines["prefix_share"] = list(_shares(_sums(watched, Seen.PREFIX_HITS), _sums(watched, Seen.PREFIX_QUERIES)))
    evicted = list(_steps(_sums(watched, Seen.PREEMPTIONS)))
    lines["preemptions"] = evicted if any(n for _, n in evicted) else []
    return {name: _course(points, origin_ns) for name, points in lines.items() if points}


def levels_of(latest: Iterable[Sample]) -> dict[str, float]:
    """How high each stands by the last looks, one a source; a level that nobody told is not there."""
    samples = list(latest)
    told = {name: [s.values[seen] for s in samples if seen in s.values] for name, (seen, _) in _GAUGES.items()}
    return {name: _GAUGES[name][1](values) for name, values in told.items() if values}


def _course(points: list[_Point], origin_ns: int) -> Course:
    every = -(-len(points) // _COURSE_MAX)
    kept = points[::every]
    return Course([(at_ns - origin_ns) / _NS_PER_S for at_ns, _ in kept], [value for _, value in kept])


# Levels.


def _within(watched: Watched) -> list[Sample]:
    return [s for s in watched.samples if watched.started_ns <= s.at_ns <= watched.ended_ns]


def _gauge(watched: Watched, seen: Seen, together: _Together) -> list[_Point]:
    within = _within(watched)
    if seen in GPU_SEEN:
        within = sorted(chain.from_iterable(serving(within, beside_server=True).values()), key=lambda s: s.at_ns)
    return list(_joined(within, seen, together))


def _gpus(watched: Watched) -> int | None:
    """A GPU of this machine is none of the server's if that is elsewhere."""
    return len(in_use(serving(_within(watched), beside_server=watched.beside_server))) or None


def _in_engine(watched: Watched) -> list[_Point]:
    waiting = dict(_gauge(watched, Seen.WAITING, fsum))
    return [(at, n + waiting[at]) for at, n in _gauge(watched, Seen.RUNNING, fsum) if at in waiting]


def _joined(samples: Sequence[Sample], seen: Seen, together: _Together) -> Iterator[_Point]:
    """All sources' last values, each time that the last of them has told."""
    told = [s for s in samples if seen in s.values]
    sources = list(dict.fromkeys(s.source for s in told))
    latest: dict[str, float] = {}
    for sample in told:
        latest[sample.source] = sample.values[seen]
        if sample.source == sources[-1]:
            yield sample.at_ns, together(list(latest.values()))


def _level(points: Sequence[_Point]) -> Level | None:
    values = [value for _, value in points]
    return Level(median(values), max(values)) if values else None


# Counters.

_COUNTERS = (
    Seen.PREFIX_QUERIES,
    Seen.PREFIX_HITS,
    Seen.PREEMPTIONS,
    Seen.QUEUE_S,
    Seen.QUEUED,
    Seen.PREFILL_S,
    Seen.PREFILLED,
    Seen.TTFT_S,
    Seen.ANSWERED,
    Seen.TRANSFERS,
    Seen.TRANSFER_S,
    Seen.TRANSFER_BYTES,
    Seen.TRANSFERS_FAILED,
    Seen.HOP_S,
    Seen.HOPPED,
)


def _engines(watched: Watched) -> dict[str, list[Sample]]:
    """The looks at each engine that enclose the stage as closely as they can."""
    found: dict[str, list[Sample]] = {}
    for sample in watched.samples:
        if sample.engine:
            found.setdefault(sample.source, []).append(sample)
    return {source: enclosing for source, samples in found.items() if (enclosing := _enclosing(watched, samples))}


def _enclosing(watched: Watched, samples: Sequence[Sample]) -> list[Sample]:
    """From the last before the stage to the first after it; at least two, or none."""
    low, high = watched.started_ns - _NEAR_NS, watched.ended_ns + _NEAR_NS
    near = [s for s in samples if low <= s.at_ns <= high]
    before = [s for s in near if s.at_ns <= watched.started_ns][-1:]
    after = [s for s in near if s.at_ns >= watched.ended_ns][:1]
    within = [s for s in near if watched.started_ns < s.at_ns < watched.ended_ns]
    enclosing = [*before, *within, *after]
    return enclosing if len(enclosing) > 1 else []


def _is_enclosed(watched: Watched) -> bool:
    """Every engine was looked at just before the stage and just after it."""
    engines = _engines(watched).values()
    return bool(engines) and all(
        looks[0].at_ns <= watched.started_ns and looks[-1].at_ns >= watched.ended_ns for looks in engines
    )


def _gained(watched: Watched, seen: Seen) -> float | None:
    """A counter that was not there at first has begun at 0: some appear with the first thing that they count."""
    gained = []
    for looks in _engines(watched).values():
        if seen in looks[-1].values:
            values = [0.0] * (seen not in looks[0].values) + [s.values[seen] for s in looks if seen in s.values]
            if any(after < before for before, after in pairwise(values)):
                return None
            gained.append(values[-1] - values[0])
    return fsum(gained) if gained else None


def _whole(gained: float | None) -> int | None:
    return None if gained is None else round(gained)


def _mean_ms(seconds: float | None, count: float | None) -> float | None:
    return 1000 * seconds / count if seconds is not None and count else None


def _prefix(watched: Watched, counters: Mapping[Seen, float | None]) -> dict[str, Any]:
    """An engine that looks up and has never found has no counter of what it found."""
    queries, hits = counters[Seen.PREFIX_QUERIES], counters[Seen.PREFIX_HITS]
    if queries:
        found = hits or 0.0
        return {
            "prefix_queries": round(queries),
            "prefix_hits": round(found),
            "prefix_share": min(1.0, found / queries),
        }
    told = _level(_gauge(watched, Seen.PREFIX_SHARE, fmean))
    return {"prefix_share": told.p50 if told else None}


def _sums(watched: Watched, seen: Seen) -> list[_Point]:
    looks = sorted((s for samples in _engines(watched).values() for s in samples), key=lambda s: s.at_ns)
    return list(_joined(looks, seen, fsum))


def _steps(sums: Sequence[_Point]) -> Iterator[_Point]:
    return ((at, after - before) for (_, before), (at, after) in pairwise(sums) if after >= before)


def _shares(hits: Sequence[_Point], queries: Sequence[_Point]) -> Iterator[_Point]:
    found = dict(_steps(hits))
    return ((at, min(1.0, found.get(at, 0.0) / step)) for at, step in _steps(queries) if step > 0)
