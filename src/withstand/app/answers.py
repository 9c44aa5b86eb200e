"""What a client had of single answers, as points over the time of a board: a short run has few, and each is seen."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from withstand.metrics.latency import timing_if_good
from withstand.record import OUR_DOING, Record
from withstand.report.board import Graph, Line
from withstand.runs import RunFolder

_TITLE, _ROW = "Each answer at the client, when it ended", "The benchmark"
_POINTS_MAX = 1500
_READ_BYTES_MAX = 1 << 26
"""Who has more than that to read has long lines already."""
_TTFT, _E2EL, _FAILED = "TTFT", "E2EL", "failed after"


def runs_below(folder: Path) -> list[RunFolder]:
    """All of a folder, itself one perhaps, in the order of their paths.

    Raises:
        WithstandError: one cannot be read.
    """
    return [RunFolder.open(path.parent) for path in sorted(folder.rglob("run.json"))]


def answers(runs: Sequence[RunFolder], since_s: float) -> list[Graph]:
    """One graph of all of them, or none where there is nothing to see, or too much."""
    if sum(run.plain_bytes() for run in runs) > _READ_BYTES_MAX:
        return []
    found: dict[str, list[tuple[float, float]]] = {_TTFT: [], _E2EL: [], _FAILED: []}
    for run in runs:
        began_s = run.manifest.anchor.wall_ns / 1e9 - since_s
        for record in run.records():
            for name, lasted_s in _times(record):
                found[name].append((began_s + (record.end_ns or 0) / 1e9, lasted_s))
    lines = [_points(name, [each for each in points if each[0] >= 0]) for name, points in found.items()]
    lines = [line for line in lines if line.values]
    return [Graph(_TITLE, "s", _ROW, lines)] if lines else []


def _times(record: Record) -> Iterator[tuple[str, float]]:
    if record.end_ns is None or record.sent_ns is None or record.status in OUR_DOING:
        return
    timing = timing_if_good(record)
    if timing is None:
        yield _FAILED, (record.end_ns - record.sent_ns) / 1e9
        return
    for name, lasted_ns in ((_TTFT, timing.ttft_ns), (_E2EL, timing.e2el_ns)):
        if lasted_ns is not None:
            yield name, lasted_ns / 1e9


def _points(name: str, points: list[tuple[float, float]]) -> Line:
    """In the order of time; of many every n-th, which its name says."""
    every = -(-len(points) // _POINTS_MAX) or 1
    shown = sorted(points)[::every]
    told = name if every == 1 else f"{name}, one of {every}"
    return Line(told, [value for _, value in shown], [at_s for at_s, _ in shown])
