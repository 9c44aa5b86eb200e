"""The comparison page's charts: figures for the lines that the script draws, and bars that need no script.

A bar is drawn against the largest value of its row, from zero, with its interval as a whisker.
"""

from collections.abc import Container, Iterator, Sequence

from withstand.compare.shape import Cell, Comparison, Group, Row
from withstand.report import comparison_words as words
from withstand.report.comparison_courses import LENGTH, Course, courses
from withstand.report.comparison_parts import legend
from withstand.report.comparison_words import Listed
from withstand.report.html_tables import scrollable
from withstand.report.markup import Markup, joined, tag
from withstand.report.numbers import decimals_of

_BARS = ("ttft.mean", "tpot.mean", "itl.mean", "e2el.mean", "output_throughput")
_BARS_MAX = 120
"""Bars of all panels: with very many sides or loads the rest is in the tables."""
_LINES = (
    ("Time to first token", (("ttft.p50", "ttft.p90"), ("ttft.p50", "ttft.p99"), ("ttft.mean", "ttft.p99"))),
    ("Output throughput", (("output_throughput",),)),
    ("End-to-end latency", (("e2el.p50", "e2el.p90"), ("e2el.p50", "e2el.p99"), ("e2el.mean", "e2el.p99"))),
    ("Success rate", (("success_rate",),)),
    ("Time per output token", (("tpot.p50", "tpot.p90"), ("tpot.p50", "tpot.p99"), ("tpot.mean", "tpot.p99"))),
    ("Request throughput", (("request_throughput",),)),
)
"""Of each the choice of which most is there, earlier ones first."""


def lines(comparison: Comparison, metrics: Sequence[Listed]) -> Markup:
    """A block for each way in which load was varied."""
    known = {metric.metric: metric for metric in metrics}
    blocks = [_block(place, one, comparison, known) for place, one in enumerate(courses(comparison.groups))]
    shown = [block for block in blocks if block]
    if not shown:
        return tag("p", "Load was not varied: there is no course to draw.", class_="lead")
    return joined(tag("p", _about_lines(comparison, known), class_="lead"), legend(comparison.sides), *shown)


def _about_lines(comparison: Comparison, known: Container[str]) -> str:
    """How to read them, as far as it applies here, and what the files do not tell."""
    cells = [cell for group in comparison.groups for row in group.rows for cell in row.cells]
    said = ["Bars are 95 % intervals." if any(cell.interval for cell in cells) else "There are no intervals."]
    if any(group.rate is None and group.concurrency is None for group in comparison.groups):
        said.append("inf has no place on the scale and is not joined.")
    lacking = [name for name, choices in _LINES if not any(key in known for choice in choices for key in choice)]
    said += [f"Not told by any side: {', '.join(lacking).lower()}."] if lacking else []
    return " ".join(said)


def _block(place: int, course: Course, comparison: Comparison, known: dict[str, Listed]) -> Markup:
    own = {id(comparison.groups[index]) for index, _ in course.places}
    there = {key for key, metric in known.items() if sum(id(group) in own for group, _ in metric.pairs) > 1}
    figures = [*_line_figures(place, there, known)]
    figures += [] if course.kind == LENGTH else _curves(place, there, known)
    if not figures:
        return Markup()
    return tag("div", tag("h3", course.title), tag("div", *figures, class_="grid"), class_="group")


def _line_figures(course: int, there: set[str], known: dict[str, Listed]) -> Iterator[Markup]:
    for title, choices in _LINES:
        chosen = max(([key for key in choice if key in there] for choice in choices), key=len)
        if chosen:
            first = known[chosen[0]].first
            styles = " solid, ".join(words_of(key) for key in chosen) + (" dashed" if len(chosen) > 1 else "")
            told = f" {words.unit(first)}" + (f"; {styles}" if "." in chosen[0] else "")
            plot = tag("div", class_="plot", data_chart="lines", data_course=str(course), data_metrics=" ".join(chosen))
            yield tag("figure", tag("figcaption", title, tag("i", told)), plot)


def words_of(metric: str) -> str:
    """``ttft.p50`` → ``p50``."""
    return metric.partition(".")[2]


def _curves(course: int, there: set[str], known: dict[str, Listed]) -> Iterator[Markup]:
    """Latency against throughput: who is further to the right and lower gives more for less."""
    across = next((key for key in ("output_throughput", "request_throughput") if key in there), None)
    for name in ("ttft", "e2el", "tpot"):
        up = next((key for key in (f"{name}.p50", f"{name}.mean") if key in there), None)
        if across and up:
            told = f" {words.unit(known[up].first)}, across {known[across].first.title.lower()}"
            plot = tag("div", class_="plot", data_chart="curve", data_course=str(course), data_metrics=f"{across} {up}")
            yield tag("figure", tag("figcaption", f"{known[up].first.title} against throughput", tag("i", told)), plot)


def loads(comparison: Comparison, metrics: Sequence[Listed]) -> Markup:
    """A panel for each set of conditions: what was measured under it, side by side."""
    chosen = [key for key in _BARS if any(metric.metric == key for metric in metrics)]
    chosen = chosen or [metric.metric for metric in metrics[: len(_BARS)]]
    most = max(1, _BARS_MAX // max(1, len(chosen) * len(comparison.sides)))
    panels = [_panel(comparison, group, chosen) for group in comparison.groups[:most]]
    more = len(comparison.groups) - len(panels)
    note = f"{more:,} more sets of conditions stand in the tables above." if more else ""
    return joined(
        tag("p", "Each bar against the largest of its row; bold is best.", class_="lead"),
        legend(comparison.sides),
        tag("div", *panels, class_="grid"),
        tag("p", note, class_="lead") if note else Markup(),
    )


def _panel(comparison: Comparison, group: Group, chosen: Sequence[str]) -> Markup:
    rows = [row for key in chosen for row in group.rows if row.metric == key]
    work = words.work(group)
    caption = tag("caption", tag("b", group.label), tag("span", f" {work}", class_="note") if work else Markup())
    headings = [
        tag("th", text, scope="col", class_=f"of-{text.lower()}") for text in ("Metric", "Side", "Bar", "Value")
    ]
    head = tag("thead", tag("tr", *headings))
    bodies = [tag("tbody", *_bars(comparison, row)) for row in rows]
    return scrollable(tag("table", caption, head, *bodies, class_="bars"), group.label)


def _bars(comparison: Comparison, row: Row) -> Iterator[Markup]:
    most = max((end for cell in row.cells for end in _ends(cell)), default=0.0)
    decimals = decimals_of(cell.value for cell in row.cells)
    for place, cell in enumerate(row.cells):
        title = tag(
            "th",
            row.title,
            tag("span", f" {words.unit(row)}", class_="unit"),
            scope="rowgroup",
            rowspan=str(len(row.cells)),
        )
        name = tag("th", comparison.sides[place].label, scope="row", class_="who")
        value = tag("td", words.value(row, cell.value, decimals), class_="best" if row.fastest == place else "")
        yield tag(
            "tr",
            title if place == 0 else Markup(),
            name,
            tag("td", tag("span", _bar(row, place, most), class_="track")),
            value,
        )


def _ends(cell: Cell) -> list[float]:
    ends = [cell.value, cell.interval.high if cell.interval else None]
    return [end for end in ends if end is not None]


def _bar(row: Row, place: int, most: float) -> Markup:
    cell = row.cells[place]
    if cell.value is None or most <= 0:
        return Markup()
    kind = "length hatched" if words.is_forbidden(row, place) else "length"
    length = tag("i", class_=kind, style=f"--c: var(--side-{place % 8}); width: {100 * cell.value / most:.1f}%")
    ends = cell.interval
    if ends is None or ends.low is None or ends.high is None:
        return length
    left, width = 100 * max(ends.low, 0.0) / most, 100 * (ends.high - max(ends.low, 0.0)) / most
    return joined(
        length, tag("i", class_="whisker", style=f"left: {left:.1f}%; width: {width:.1f}%", aria_hidden="true")
    )
