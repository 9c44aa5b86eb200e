"""``report.html``: one file that needs nothing else, works offline and can be sent to someone.

The page's own policy forbids every request, and every script but the two written here; what came from outside is
escaped by ``markup`` and ``charts``.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from string import Template

from withstand.metrics.series import StageSeries
from withstand.metrics.summary import Summary
from withstand.report import html_client, html_parts, html_tables
from withstand.report.about import About
from withstand.report.charts import charts_json
from withstand.report.markup import joined

BYTES_MAX = 1_480_000
"""Of the whole page: it shall go through any mail. The charts' points get what the rest leaves."""


def render_html(summary: Summary, series: Sequence[StageSeries], about: About) -> str:
    """The whole page. ``series`` holds the charts of the summary's stages, in their order."""
    page, parts = _asset("page.html"), _assets() | _written(summary, about)
    room = BYTES_MAX - sum(len(text.encode()) for text in (page, *parts.values()))
    return Template(page).substitute(parts, data=charts_json(summary, series, room))


def _assets() -> dict[str, str]:
    plotly, app = _asset("plotly-basic.min.js"), _asset("app.js")
    return {"plotly": plotly, "app": app, "css": _asset("app.css"), "policy": _policy((plotly, app))}


def _written(summary: Summary, about: About) -> dict[str, str]:
    return {
        "title": joined(f"{about.title} · withstand"),
        "masthead": html_parts.masthead(summary, about),
        "doubts": html_parts.doubts(summary),
        "figures": html_parts.key_figures(summary),
        "stages": html_tables.stages(summary),
        "client": html_client.client(summary),
        "percentiles": html_tables.percentiles(summary),
        "tokens": html_tables.tokens(summary),
        "circumstances": html_parts.circumstances(about),
        "definitions": html_parts.definitions(),
    }


def _policy(scripts: Sequence[str]) -> str:
    """Plotly writes style attributes, hence the laxer rule for those."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:"


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _asset(name: str) -> str:
    return resources.files("withstand.report").joinpath("assets", name).read_text("utf-8")
