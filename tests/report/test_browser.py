"""The pages in a real browser: all charts are drawn, the network is asked for nothing, nothing sticks out."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from comparisons import DECISIONS, EVIL_DECISIONS, NOW, comparison_of, evil_comparison
from limits_found import searched_limit
from pages import CHROMIUM, POLICY, attribute, browse, measured
from withstand.compare.shape import Comparison
from withstand.metrics.series import Ecdf
from withstand.metrics.server import Course
from withstand.metrics.summary import Interval, Summary
from withstand.report.comparison import render
from withstand.report.html import render_html

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


@pytest.mark.parametrize("which", ["sample", "single", "fallen"])
def test_all_charts_are_drawn_in_silence(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """The page's policy forbids every request; a try would be told on the console."""
    sample: Any = request.getfixturevalue(which)
    document, console = browse(render_html(sample.summary, sample.series, sample.about), tmp_path, 1400)
    assert console == ""
    assert attribute(document, "charts") == "drawn"


def test_a_page_of_nothing_says_nothing_of_requests(sample: Any, tmp_path: Path) -> None:
    page = render_html(Summary(stages=()), (), sample.about)
    document, console = browse(page, tmp_path, 800)
    shown = document.split('id="data"')[0]
    assert console == ""
    assert "ended well" not in shown
    assert "its cap on concurrency" not in shown


def test_every_control_works_and_the_body_is_not_wider_than_a_small_window(sample: Any, tmp_path: Path) -> None:
    page = measured(render_html(sample.summary, sample.series, sample.about))
    document, console = browse(page, tmp_path, 800)
    assert console == ""
    _fits(document, 800)
    assert attribute(document, "plots") == "17"


def test_the_server_s_side_has_the_charts_of_what_was_seen(sample: Any, tmp_path: Path) -> None:
    line = Course([0.0, 1.0, 2.0], [1.0, 0.5, 0.25])
    seen = {"running": line, "waiting": line, "kv_share": line, "cpu_share": line}
    first, *others = sample.series
    series = [msgspec.structs.replace(first, server=seen), *others]
    document, console = browse(measured(render_html(sample.summary, series, sample.about)), tmp_path, 800)
    assert console == ""
    _fits(document, 800)
    assert attribute(document, "plots") == "20"
    assert "Preemptions" not in document


@pytest.mark.parametrize("width", [1400, 800])
def test_the_course_of_a_search_for_a_limit_is_drawn_in_silence(width: int, sample: Any, tmp_path: Path) -> None:
    page = render_html(sample.summary, sample.series, sample.about, searched_limit())
    drawn, console = browse(page, tmp_path, width)
    assert console == ""
    assert attribute(drawn, "charts") == "drawn"
    document, _ = browse(measured(page), tmp_path, width)
    _fits(document, width)
    assert attribute(document, "plots") == "20"
    assert attribute(document, "needless") == "0"


DRAWN = """<script>addEventListener("load", () => setTimeout(() => {
  const plots = (name) => [...document.querySelectorAll(`[data-chart=${name}]`)].filter((plot) => plot.data);
  const band = (plot) => plot.layout.shapes.filter((one) => one.type === "rect").map((one) => [one.x0, one.x1]);
  document.documentElement.dataset.loads = JSON.stringify(plots("byLoad").map((plot) => plot.data[0].x));
  const isCut = (one) => one.getBoundingClientRect().right > innerWidth;
  document.documentElement.dataset.cut = [...document.querySelectorAll("caption")].filter(isCut).length;
  document.documentElement.dataset.shares = JSON.stringify(plots("ecdf").map((plot) => plot.data[0].y));
  document.documentElement.dataset.bands = JSON.stringify(plots("limit").map(band));
}, 4000))</script></body>"""


def _drawn(page: str, folder: Path, name: str, width: int = 1400) -> Any:
    document, _ = browse(POLICY.sub("", page).replace("</body>", DRAWN), folder, width)
    assert attribute(document, "cut") == "0", "a table scrolls, what is said of it does not"
    return json.loads(attribute(document, name) or "null")


def test_points_are_joined_by_load_and_not_as_they_were_measured(sample: Any, tmp_path: Path) -> None:
    loads = (8.0, 2.0, 8.0, 4.0)
    stage, series = sample.summary.stages[0], sample.series[0]
    asked = [msgspec.structs.replace(stage.load, request_rate=rate) for rate in loads]
    stages = tuple(
        msgspec.structs.replace(stage, name=f"at-{i}", phase="search", load=load) for i, load in enumerate(asked)
    )
    page = render_html(msgspec.structs.replace(sample.summary, stages=stages), [series] * len(loads), sample.about)
    assert _drawn(page, tmp_path, "loads", 390) == [[2.0, 4.0, 8.0, 8.0]]


def test_of_three_answers_a_third_is_as_fast_as_the_fastest(sample: Any, tmp_path: Path) -> None:
    three = Ecdf(share=[0.0, 0.5, 1.0], value_ms=[10.0, 20.0, 30.0], count=3)
    series = msgspec.structs.replace(sample.series[0], ecdf={"e2el": three})
    summary = msgspec.structs.replace(sample.summary, stages=sample.summary.stages[:1])
    (shares,) = _drawn(render_html(summary, [series], sample.about), tmp_path, "shares")
    assert shares == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_where_a_limit_has_no_lower_end_the_shade_reaches_to_the_edge(sample: Any, tmp_path: Path) -> None:
    limit = msgspec.structs.replace(searched_limit(), load=None, interval=Interval(None, 4.2))
    page = render_html(sample.summary, sample.series, sample.about, limit)
    assert _drawn(page, tmp_path, "bands") == [[[0, 4.2]]] * 3


def _fits(document: str, window: int) -> None:
    width, body = attribute(document, "window"), attribute(document, "body")
    assert width
    assert body
    assert int(body) <= int(width) <= window
    assert attribute(document, "charts") == "drawn"


def test_the_charts_of_a_comparison_are_drawn_in_silence(tmp_path: Path) -> None:
    page = render(comparison_of(), "html", decisions=DECISIONS, now=NOW)
    document, console = browse(page, tmp_path, 1400)
    assert console == ""
    assert attribute(document, "charts") == "drawn"


@pytest.mark.parametrize("width", [1400, 800])
def test_no_table_scrolls_that_fits(width: int, tmp_path: Path) -> None:
    document, _ = browse(measured(render(comparison_of(), "html", decisions=DECISIONS, now=NOW)), tmp_path, width)
    assert attribute(document, "needless") == "0"


@pytest.mark.parametrize(
    "comparison",
    [comparison_of(("a", "b", "c")), comparison_of(facts=False), evil_comparison()],
    ids=["three", "aggregates", "evil"],
)
def test_a_comparison_fits_a_narrow_window_and_leaves_no_chart_out(comparison: Comparison, tmp_path: Path) -> None:
    page = render(comparison, "html", decisions=EVIL_DECISIONS, now=NOW)
    document, console = browse(measured(page), tmp_path, 520)
    assert console == ""
    _fits(document, 520)
    assert attribute(document, "plots") == str(page.count('data-chart="'))
    assert attribute(document, "empty") == "0"
    assert "onerror=alert(1)&gt;" in document
