"""``board.html``: what a stack's monitoring has seen of a run, kept for when the stack is gone. Pure.

A graph is what a dashboard calls a panel. Its lines lie on one grid of instants; where a series was not there, its
line has a gap. Single answers are points, wherever they are.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import msgspec
from msgspec import Struct

from withstand.report.charts import escaped_json, short
from withstand.report.html_page import assembled
from withstand.report.markup import Markup, joined, tag
from withstand.report.numbers import counted, number, plain, seconds

BOARD_NAME = "board.html"
_SCALES: Final = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "Bps": ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
    "percentunit": ((0.01, "%"),),
    "reqps": ((1.0, "req/s"),),
    "short": ((1.0, ""),),
}
"""Grafana's word for a unit → what it may be shown in, the largest first. Others are ``suffix: UNIT``."""


class Line(Struct, frozen=True):
    """One series; a value for each instant of the board, None where there was none.

    What has instants of its own, in seconds since the beginning, is single points.
    """

    name: str
    values: Sequence[float | None]
    at_s: Sequence[float] | None = None


class Graph(Struct, frozen=True):
    """``unit`` is one of Grafana's words; ``row`` is what it stands under."""

    title: str
    unit: str
    row: str
    lines: Sequence[Line]


class Span(Struct, frozen=True):
    """From when to when something was so, in seconds since the board's beginning."""

    name: str
    start_s: float
    end_s: float


class Shade(Struct, frozen=True, kw_only=True):
    """A stage: when it was, and whose. ``side`` is what several runs are of; empty for one run."""

    span: Span
    side: str = ""
    warmup: bool = False


class Board(Struct, frozen=True, kw_only=True):
    """``step_s`` lies between two instants; the first is the beginning."""

    title: str
    begun_utc: str
    length_s: float
    step_s: float
    window_s: float
    """Of which rates and means are."""
    stages: Sequence[Shade]
    alerts: Sequence[Span]
    graphs: Sequence[Graph]
    missed: Sequence[str] = ()
    """What is not seen here, or was not there to be seen: a sentence each."""


def render_board(board: Board) -> str:
    """The whole page."""
    written = {
        "title": joined(f"{board.title} · monitoring · withstand"),
        "masthead": _masthead(board),
        "alerts": _alerts(board.alerts),
        "missed": _missed(board.missed),
        "rows": _rows(board.graphs),
    }
    return assembled("board", ("page.css", "board.css"), written, lambda room: board_json(board, room))


def board_json(board: Board, bytes_max: int) -> str:
    """What is drawn, thinned until it fits."""
    for every in (1, 2, 4, 8, 16, 32):
        encoded = msgspec.json.encode(_drawn(board, every))
        if len(encoded) <= bytes_max:
            break
    return escaped_json(encoded)


def scale_of(graph: Graph) -> tuple[float, str]:
    """In what its values are shown: their largest is 1 or more of it, where there is such a unit."""
    most = max((abs(value) for line in graph.lines for value in line.values if value is not None), default=0.0)
    scales = _SCALES.get(graph.unit, ((1.0, graph.unit.removeprefix("suffix:").strip()),))
    return next((scale for scale in scales if most >= scale[0]), scales[0 if most == 0 else -1])


def _drawn(board: Board, every: int) -> dict[str, Any]:
    return {
        "length": short(board.length_s),
        "step": board.step_s * every,
        "stages": _shades(board),
        "graphs": [_graph(graph, every) for graph in board.graphs],
    }


def _sides(board: Board) -> list[str]:
    """In the order of their first stages."""
    return list(dict.fromkeys(stage.side for stage in board.stages))


def _shades(board: Board) -> list[list[Any]]:
    """Of measured stages: name, start, end, side's place, turn: stages of a side that follow each other differ.

    Warm-ups are not shaded: a scrape may miss one, and by the eye none shall be taken for a stage.
    """
    sides, turns, drawn = _sides(board), Counter[str](), []
    for stage in board.stages:
        if not stage.warmup:
            span = stage.span
            at_s = [short(span.start_s), short(span.end_s)]
            drawn.append([span.name, *at_s, sides.index(stage.side), turns[stage.side] % 2])
            turns[stage.side] += 1
    return drawn


def _graph(graph: Graph, every: int) -> dict[str, Any]:
    factor, unit = scale_of(graph)
    return {"unit": unit, "lines": [_line(line, factor, every) for line in graph.lines]}


def _line(line: Line, factor: float, every: int) -> dict[str, Any]:
    drawn = {"name": line.name, "y": [None if v is None else short(v / factor) for v in line.values[::every]]}
    return drawn if line.at_s is None else {**drawn, "x": [short(at_s) for at_s in line.at_s[::every]]}


def _masthead(board: Board) -> Markup:
    stages = counted(sum(not stage.warmup for stage in board.stages), "stage")
    sides = _sides(board)
    named = [tag("ul", *(tag("li", tag("b", side)) for side in sides), class_="keys sides")] if len(sides) > 1 else []
    return tag(
        "header",
        tag("p", "Monitoring", class_="eyebrow"),
        tag("h1", board.title),
        tag("p", f"{seconds(board.length_s)} from {board.begun_utc}, {stages}.", class_="extent"),
        tag(
            "p",
            "As the stack's Prometheus saw it: the panels of its Grafana dashboard. Time is in seconds since the run "
            "began, a shade is a stage; warm-ups have none. Rates and means are of the last "
            f"{seconds(board.window_s)}, so they lag by half of that. What a client had of single answers "
            "is from the run's records.",
            class_="place",
        ),
        *named,
    )


def _alerts(alerts: Sequence[Span]) -> Markup:
    if not alerts:
        return tag("p", "None called.", class_="lead")
    told = (f"{one.name}, from {seconds(one.start_s)} to {seconds(one.end_s)}" for one in alerts)
    return tag("ul", *(tag("li", text) for text in told), class_="alerts")


def _missed(told: Sequence[str]) -> Markup:
    """Nothing where all was seen."""
    if not told:
        return Markup()
    listed = tag("ul", *(tag("li", text) for text in told), class_="alerts")
    return tag("section", tag("h2", "Missing"), tag("div", listed, class_="body"), id="missed")


def _rows(graphs: Sequence[Graph]) -> Markup:
    numbered = list(enumerate(graphs))
    return joined(*(_row(row, list(of_row)) for row, of_row in groupby(numbered, lambda one: one[1].row)))


def _row(title: str, graphs: Sequence[tuple[int, Graph]]) -> Markup:
    """Its graphs; those that are empty are only named."""
    drawn = [_figure(place, graph) for place, graph in graphs if graph.lines]
    empty = [graph.title for _, graph in graphs if not graph.lines]
    parts = [tag("div", *drawn, class_="grid")] if drawn else []
    if empty:
        parts.append(tag("p", f"No data: {'; '.join(empty)}.", class_="lead unseen"))
    return tag("section", tag("h2", title), tag("div", *parts, class_="body"))


def _figure(place: int, graph: Graph) -> Markup:
    _, unit = scale_of(graph)
    caption = tag("figcaption", joined(graph.title, " "), tag("i", unit))
    keys = tag("ul", *(_key(line, graph) for line in graph.lines), class_="keys")
    return tag("figure", caption, tag("div", class_="plot", data_graph=str(place), data_chart="graph"), keys)


def _is_whole(value: float) -> bool:
    return value == int(value)


def _key(line: Line, graph: Graph) -> Markup:
    """A line's name, its mean and its highest value."""
    factor, _ = scale_of(graph)
    known = [value / factor for value in line.values if value is not None]
    most = plain(max(known)) if graph.unit == "short" and all(map(_is_whole, known)) else number(max(known))
    mean = sum(known) / len(known)
    told = f"mean {number(mean) if mean else '0'}, up to {most}"
    return tag("li", tag("b", line.name), joined(" "), tag("span", told))
