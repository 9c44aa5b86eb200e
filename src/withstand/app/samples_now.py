"""The server's side of a run that goes on: the last sample of each source, and a short course of each level."""

from collections import defaultdict, deque
from pathlib import Path

import msgspec

from withstand.app.tail import Tail
from withstand.metrics.live import ServerNow
from withstand.metrics.server import Course, levels_of
from withstand.record import Sample, decode_sample
from withstand.runs.samples import OPEN

_LOOK_BYTES = 1 << 16
_POINTS_MAX = 240
_SOURCES_MAX = 64
_NS_PER_S = 1e9


class SamplesNow:
    """``samples.jsonl`` of a folder."""

    def __init__(self, folder: Path) -> None:
        self._tail = Tail(folder / OPEN)
        self._latest: dict[str, Sample] = {}
        self._courses: defaultdict[str, deque[tuple[float, float]]] = defaultdict(lambda: deque(maxlen=_POINTS_MAX))

    def look(self) -> ServerNow | None:
        """None where nothing was seen."""
        for line in self._tail.read(_LOOK_BYTES).splitlines():
            self._take(line)
        if not self._latest:
            return None
        return ServerNow(
            engines=tuple(sorted({s.engine for s in self._latest.values() if s.engine})),
            levels=levels_of(self._latest.values()),
            courses={
                name: Course([at_s for at_s, _ in points], [value for _, value in points])
                for name, points in self._courses.items()
            },
        )

    def _take(self, line: bytes) -> None:
        """When all sources have told, by the one that tells last, the levels stand anew."""
        try:
            sample = decode_sample(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        if sample.source not in self._latest and len(self._latest) >= _SOURCES_MAX:
            return
        is_last = bool(self._latest) and sample.source == list(self._latest)[-1]
        self._latest[sample.source] = sample
        if is_last:
            for name, value in levels_of(self._latest.values()).items():
                self._courses[name].append((sample.at_ns / _NS_PER_S, value))
