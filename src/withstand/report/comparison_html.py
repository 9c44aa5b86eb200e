"""The page of a comparison: the headline and the doubts, every metric as chart and table, and what it all rests on."""

from collections.abc import Sequence

from withstand.compare.shape import Comparison, Decision
from withstand.report import comparison_panels, comparison_parts, comparison_tables
from withstand.report import comparison_words as words
from withstand.report.comparison_charts import comparison_charts
from withstand.report.comparison_words import Listed
from withstand.report.html_page import assembled
from withstand.report.markup import Markup, joined, tag
from withstand.report.numbers import counted

_TABLES_BYTES_MAX = 90_000
"""Of the metrics' tables; what goes beyond is in the CSV and the JSON."""


def comparison_html(comparison: Comparison, decisions: Sequence[Decision], now: str) -> str:
    """The whole page."""
    metrics = words.listed(comparison)
    opened = words.opened(metrics)
    context = comparison_tables.context_of(comparison)
    tables = [comparison_tables.metric(context, one, opened=one in opened) for one in metrics]
    shown = _fitting(tables)
    written = {
        "title": joined(f"{words.title(comparison)} · withstand"),
        "masthead": comparison_parts.masthead(comparison, now),
        "doubts": comparison_parts.doubts(context),
        "decisions": comparison_parts.decisions(context, decisions),
        "glance": comparison_tables.glance(comparison, metrics),
        "lines": comparison_panels.lines(comparison, metrics),
        "about": comparison_parts.about_tables(context),
        "metrics": joined(*tables[:shown], _left_out(metrics[shown:])),
        "loads": comparison_panels.loads(comparison, metrics),
        "conditions": comparison_parts.conditions(comparison),
        "method": comparison_parts.method(comparison),
    }
    return assembled(
        "comparison",
        ("page.css", "comparison.css"),
        written,
        lambda room: comparison_charts(comparison, metrics[:shown], room),
    )


def _fitting(tables: Sequence[Markup]) -> int:
    """How many of them the page can hold; at least one."""
    size = 0
    for place, table in enumerate(tables):
        size += len(table.encode())
        if place and size > _TABLES_BYTES_MAX:
            return place
    return len(tables)


def _left_out(metrics: Sequence[Listed]) -> Markup:
    if not metrics:
        return Markup()
    names = ", ".join(metric.first.title for metric in metrics)
    return tag("p", f"{counted(len(metrics), 'more metric')} in the CSV and the JSON: {names}.", class_="lead")
