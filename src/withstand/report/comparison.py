"""A comparison in every form that people ask for. It shows; whatever is shown was computed before."""

from collections.abc import Callable, Mapping, Sequence

from withstand.compare.shape import Comparison, Decision
from withstand.report.comparison_csv import comparison_csv
from withstand.report.comparison_html import comparison_html
from withstand.report.comparison_json import comparison_json
from withstand.report.comparison_llmd import comparison_llmd
from withstand.report.comparison_markdown import comparison_markdown

Exporter = Callable[[Comparison, Sequence[Decision], str], str]

EXPORTERS: Mapping[str, Exporter] = {
    "html": comparison_html,
    "markdown": comparison_markdown,
    "csv": lambda comparison, _decisions, _now: comparison_csv(comparison),
    "json": comparison_json,
    "llmd": lambda comparison, _decisions, now: comparison_llmd(comparison, now),
}
"""By the name that the command line has for a form."""


def render(comparison: Comparison, form: str, *, decisions: Sequence[Decision] = (), now: str) -> str:
    """The whole text of a file. ``form`` is a key of ``EXPORTERS``, ``now`` an instant: ``2026-11-28T03:04:05Z``."""
    return EXPORTERS[form](comparison, decisions, now)
