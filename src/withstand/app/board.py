"""Keeps what a stack's monitoring has seen of a run: the dashboard's panels as a page in the run's folder."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from withstand import clock
from withstand.app.answers import answers, runs_below
from withstand.app.missed import away, odd, unheard
from withstand.files import write_atomically
from withstand.report.board import BOARD_NAME, Board, Graph, Line, Shade, Span, render_board
from withstand.report.numbers import utc
from withstand.runs import RunFolder, TurnsFolder
from withstand.stack.prometheus import Range, Series, over_time
from withstand.stack.queries import FIRING, PANELS, STAGES, Panel, window_s, windowed

_INSTANTS = 240
"""More are no wider than a pixel."""
_CATCH_UP_S_MAX = 10.0
_BLOCK = re.compile(r"([ab])-\d+")
"""A run of two that are measured in turn, by its side."""
_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def span_s(folder: Path) -> tuple[float, float] | None:
    """From when to when a folder's runs measured (wall clock); None = they have not.

    Raises:
        WithstandError: a run's folder cannot be read.
    """
    manifests = [run.manifest for run in runs_below(folder)]
    ends_ns = [one.anchor.wall_ns + entry.ended_ns for one in manifests for entry in one.stages if entry.ended_ns]
    return (min(one.anchor.wall_ns for one in manifests) / 1e9, max(ends_ns) / 1e9) if ends_ns else None


def keep_board(
    folder: Path, prometheus: str, stack: str, since_s: float, scrape_s: float, until_s: float | None = None
) -> Path:
    """``board.html``, from ``since_s`` (wall clock) until then or now; its path. Answers are the folder's own.

    Raises:
        WithstandError: a run's folder cannot be read.
        EngineError: Prometheus does not answer.
        StorageError: it cannot be written.
    """
    runs = runs_below(folder)
    now_s = until_s or clock.wall_s()
    step_s = max(scrape_s, round((now_s - since_s) / _INSTANTS, 3))
    when = Range(since_s, now_s, step_s)
    strange: list[str] = []
    graphs = [_graph(prometheus, panel, when, scrape_s, strange) for panel in PANELS]
    board = Board(
        title=stack,
        begun_utc=_utc(since_s),
        length_s=now_s - since_s,
        step_s=step_s,
        window_s=window_s(scrape_s),
        stages=_stages(prometheus, when, _warmups(runs), _labels(folder)),
        alerts=_alerts(prometheus, when),
        graphs=[*answers(runs, since_s), *graphs],
        missed=[*away(runs, since_s), *unheard(prometheus, when), *odd(strange)],
    )
    path = folder / BOARD_NAME
    write_atomically(path, render_board(board).encode())
    return path


def _utc(wall_s: float) -> str:
    return utc(clock.utc_iso(int(wall_s * 1e9)))


def catch_up_s(scrape_s: float) -> float:
    """For how long Prometheus has not yet seen, and reckoned with, what there is now: a scrape, and its rules' turn."""
    return min(2 * scrape_s + 0.5, _CATCH_UP_S_MAX)


def _graph(prometheus: str, panel: Panel, when: Range, scrape_s: float, strange: list[str]) -> Graph:
    """``strange`` gets the names of lines whose values cannot be."""
    found = [
        (legend_of(legend, series.metric), series)
        for legend, expression in panel.queries.items()
        for series in over_time(prometheus, windowed(expression, scrape_s), when)
    ]
    named = told_apart(found)
    strange += [f"{panel.title}, {name}" for name, series in named if series.is_odd]
    lines = [Line(name, on_grid(series, when)) for name, series in named]
    seen = [line for line in lines if any(value is not None for value in line.values)]
    return Graph(panel.title, panel.unit, panel.row, seen)


def legend_of(template: str, labels: Mapping[str, str]) -> str:
    """``{{service}} waits`` → ``large waits``, as Grafana fills it in."""
    return _LABEL.sub(lambda found: labels.get(found[1], ""), template)


def told_apart(found: Sequence[tuple[str, Series]]) -> list[tuple[str, Series]]:
    """Of those that have one name, as two gateways' have, each with its service's."""
    often = Counter(name for name, _ in found)
    return [
        (f"{name} {series.metric.get('service', '')}".strip() if often[name] > 1 else name, series)
        for name, series in found
    ]


def on_grid(series: Series, when: Range) -> list[float | None]:
    """A value for each instant that was asked for."""
    values: list[float | None] = [None] * (math.floor((when.end_s - when.start_s) / when.step_s + 1e-6) + 1)
    for at_s, value in series.at().items():
        place = round((at_s - when.start_s) / when.step_s)
        if 0 <= place < len(values):
            values[place] = value
    return values


def _labels(folder: Path) -> dict[str, str]:
    """What the sides of two that were measured in turn are: ``a`` → ``a = direct``; nothing elsewhere."""
    if not TurnsFolder.is_one(folder):
        return {}
    return {
        name: f"{name} = {side.label}" for name, side in zip("ab", TurnsFolder.open(folder).asked.sides, strict=True)
    }


def _stages(prometheus: str, when: Range, warmups: set[tuple[str, str]], labels: Mapping[str, str]) -> list[Shade]:
    """Those of several runs have their run's name, and its alone where a run has no other stage that is measured."""
    found = over_time(prometheus, STAGES, when)
    known = {_of(series.metric) for series in found}
    measured = Counter(run for run, _ in known - warmups)
    several = len({run for run, _ in known}) > 1

    def shade(run: str, stage: str, span: Span) -> Shade:
        warmup = (run, stage) in warmups
        name = stage if not several else run if measured[run] == 1 and not warmup else f"{run} {stage}"
        block = _BLOCK.fullmatch(run)
        side = "" if not several else labels.get(block[1], block[1]) if block else run
        return Shade(span=msgspec.structs.replace(span, name=name), side=side, warmup=warmup)

    shades = [shade(*_of(series.metric), span) for series in found for span in _spans([series], lambda _: "", when)]
    return sorted(shades, key=lambda shade: shade.span.start_s)


def _of(labels: Mapping[str, str]) -> tuple[str, str]:
    """A stage's run, and its name."""
    return labels.get("run", ""), labels.get("stage", "?")


def _warmups(runs: Sequence[RunFolder]) -> set[tuple[str, str]]:
    """Run and name of each."""
    return {(run.path.name, one.name) for run in runs for _, one in run.manifest.in_order() if one.stage.warmup}


def _alerts(prometheus: str, when: Range) -> list[Span]:
    """With the service that they are about, where there is one."""

    def named(told: Mapping[str, str]) -> str:
        return f"{told['alertname']} ({told['service']})" if "service" in told else told["alertname"]

    return _spans(over_time(prometheus, FIRING, when), named, when)


def _spans(found: Sequence[Series], named: Callable[[Mapping[str, str]], str], when: Range) -> list[Span]:
    """When each series was there, in the order of time."""
    spans = [
        Span(named(series.metric), start * when.step_s, min(end * when.step_s, when.end_s - when.start_s))
        for series in found
        for start, end in _stretches(on_grid(series, when))
    ]
    return sorted(spans, key=lambda span: span.start_s)


def _stretches(values: list[float | None]) -> Iterator[tuple[int, int]]:
    """First place, and the place behind the last one, of all that stand together."""
    start: int | None = None
    for place, value in enumerate([*values, None]):
        if value is not None and start is None:
            start = place
        elif value is None and start is not None:
            yield start, place
            start = None
