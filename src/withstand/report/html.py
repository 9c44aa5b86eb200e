"""``report.html``: the page of one run."""

from collections.abc import Sequence

from withstand.control.limit import Limit
from withstand.metrics.series import StageSeries
from withstand.metrics.summary import Summary
from withstand.report import html_client, html_doctor, html_limit, html_parts, html_tables
from withstand.report.about import About
from withstand.report.charts import charts_json
from withstand.report.html_page import assembled
from withstand.report.limit_chart import limit_chart
from withstand.report.markup import joined


def render_html(summary: Summary, series: Sequence[StageSeries], about: About, limit: Limit | None = None) -> str:
    """The whole page. ``series`` holds the charts of the summary's stages, in their order."""
    detail = "" if any(one.ecdf for one in series) else "aggregates" if summary.stages else "nothing"
    written = _written(summary, about) | {"detail": detail}
    written["limit"] = html_limit.limit_section(limit) if limit else ""
    drawn = limit_chart(limit) if limit else None
    return assembled("run", ("page.css",), written, lambda room: charts_json(summary, series, room, drawn))


def _written(summary: Summary, about: About) -> dict[str, str]:
    return {
        "title": joined(f"{about.title} · withstand"),
        "masthead": html_parts.masthead(summary, about),
        "doubts": html_parts.doubts(summary),
        "figures": html_parts.key_figures(summary),
        "stages": html_tables.stages(summary),
        "client": html_client.client(summary),
        "server": html_parts.server(summary),
        "percentiles": html_tables.percentiles(summary),
        "layers": html_tables.layers(summary),
        "tokens": html_tables.tokens(summary),
        "costs": html_tables.costs(summary),
        "energy": html_tables.energy(summary),
        "doctor": html_doctor.doctor_section(about.diagnosis),
        "circumstances": html_parts.circumstances(about),
        "definitions": html_parts.definitions(),
    }
