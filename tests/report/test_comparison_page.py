import json
import re
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from comparisons import DECISIONS, EVIL, EVIL_DECISIONS, NOW, comparison_of, evil_comparison, group_of
from pages import parsed
from withstand.compare.shape import Comparison, Row
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.report.comparison import render

DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
TEXT = re.compile(r"<[^>]+>")


def page_of(comparison: Comparison) -> str:
    return render(comparison, "html", decisions=DECISIONS, now=NOW)


def data_of(page: str) -> dict[str, object]:
    found = DATA.search(page)
    assert found
    document: dict[str, object] = json.loads(found[1])
    return document


def text_of(page: str) -> str:
    return TEXT.sub(" ", page).replace("\u00a0", " ")


@pytest.fixture(scope="module")
def page() -> str:
    return page_of(comparison_of())


def test_the_page_is_one_file_that_asks_for_nothing(page: str) -> None:
    tags = parsed(page)
    assert not tags.open
    assert not [value for name, value in tags.attributes if name in {"src", "href"} and not str(value).startswith("#")]
    assert not {"link", "img", "iframe"} & set(tags.seen)
    assert "default-src 'none'" in page
    assert len(page.encode()) < 1_500_000


def test_the_headline_and_the_doubts_come_first(page: str) -> None:
    sections = ("masthead", "doubts", "decisions", "glance", "metrics", "lines", "loads", "conditions", "method")
    places = [page.index(f'id="{name}"') for name in sections[1:]]
    assert places == sorted(places)
    assert page.index("The new one is slower to the first token.") < places[0]
    assert "3 of 100 requests failed." in page


def test_every_number_of_the_tables_is_there_without_a_script(page: str) -> None:
    without = text_of(page[: page.index('<script type="application/json"')])
    for said in ("Fastest", "Faster by", "17.36 %", "no difference shown", "cannot be concluded", "+17.0 to +26.0 %"):
        assert said in without


def test_what_was_done_is_told_once(page: str) -> None:
    assert "97 to 100 of 100 answered" in page


def test_what_could_not_be_compared_is_said(page: str) -> None:
    assert "1 measurement without an equal on the other side." in page
    assert "new at 20 req/s is left out. the other side has no such rate." in text_of(page)


def test_a_forced_comparison_says_so(page: str) -> None:
    forced = page_of(comparison_of(forced=True))
    assert "Forced: conditions differ" in forced
    assert "Forced: conditions differ" not in page


def test_what_is_not_shown_among_so_many_does_not_read_as_equal() -> None:
    comparison = comparison_of()
    caution = "The interval leaves 0 out; but so many metrics were compared."
    rows = tuple(replace(row, cautions=(caution,)) for row in comparison.groups[0].rows)
    page = page_of(replace(comparison, groups=(replace(comparison.groups[0], rows=rows),)))
    glance = page[page.index('class="glance"') : page.index('id="metrics"')]
    assert '<b aria-hidden="true">~</b>' in glance
    assert '<b aria-hidden="true">=</b>' not in glance
    assert "<sup>a</sup>" in glance
    assert caution in glance


def test_what_is_typed_stands_without_backticks() -> None:
    page = page_of(replace(comparison_of(), headline="Each ran once: `withstand ab <A>` measures them in turn."))
    assert "Each ran once: <code>withstand ab &lt;A&gt;</code> measures them" in page
    assert "one ` alone" in page_of(replace(comparison_of(), headline="one ` alone"))


def test_decisions_may_conclude_nothing(page: str) -> None:
    assert "lowest TTFT" in page
    assert "nothing can be concluded" in page
    assert 'id="decisions"' not in render(comparison_of(), "html", now=NOW)


def test_all_that_a_table_needs_for_a_screen_reader_is_there(page: str) -> None:
    head, tables = page.split("</style>", 1)
    assert '<html lang="en">' in head
    body = tables[: tables.index('<script type="application/json"')]
    assert body.count("<th") - body.count("<thead") == body.count(' scope="')
    assert body.count('role="region"') == body.count("<table")
    assert body.index('class="skip"') < body.index("<main>")


def test_every_small_number_leads_to_a_doubt(page: str) -> None:
    tags = parsed(page)
    ids = {value for name, value in tags.attributes if name == "id"}
    links = {str(value).removeprefix("#") for name, value in tags.attributes if name == "href"}
    assert {link for link in links if link.startswith("doubt-")}
    assert links <= ids
    assert 'aria-label="doubt 1"' in page


def test_what_a_doubt_forbids_is_hatched_and_flagged_for_the_charts() -> None:
    comparison = comparison_of()
    group, *others = comparison.groups
    first, *rows = group.rows
    late = Doubt(DoubtKind.RATE_NOT_ACHIEVED, "27.91 of 30 were achieved.", "Compare lower rates.")
    cells = (first.cells[0], msgspec.structs.replace(first.cells[1], doubts=(late,)))
    doubted = msgspec.structs.replace(first, cells=cells, because=(late,))
    groups = (msgspec.structs.replace(group, rows=(doubted, *rows)), *others)
    page = page_of(msgspec.structs.replace(comparison, groups=groups))
    metrics: Any = data_of(page)["metrics"]
    assert [cell[6] for cell in metrics[first.metric]["rows"][0]] == [False, True]
    assert page.count('class="length hatched"') == 1


def test_what_all_rows_lack_is_said_once() -> None:
    page = text_of(page_of(comparison_of(facts=False)))
    assert page[: page.index('{"')].count("Aggregates only.") == 1


def test_a_course_that_nobody_tells_is_named() -> None:
    comparison = comparison_of()
    less = [
        msgspec.structs.replace(group, rows=tuple(row for row in group.rows if not row.metric.startswith("e2el")))
        for group in comparison.groups
    ]
    assert "Not told by any side: end-to-end latency, request throughput." in page_of(
        msgspec.structs.replace(comparison, groups=tuple(less))
    )


def test_each_way_of_varying_load_has_its_charts(page: str) -> None:
    assert "Against offered rate" in page
    assert "Against concurrency" in page
    assert 'data-course="0" data-metrics="ttft.p50 ttft.p99"' in page
    assert 'data-course="1" data-metrics="success_rate"' in page
    assert data_of(page)["courses"] == [
        {"kind": "rate", "places": [[0, 1], [1, 5], [2, 10], [3, None]]},
        {"kind": "concurrency", "places": [[4, 1], [5, 4], [6, 16]]},
    ]


def test_one_set_of_conditions_has_no_course() -> None:
    comparison = comparison_of()
    single = msgspec.structs.replace(comparison, groups=comparison.groups[:1])
    assert "there is no course to draw" in page_of(single)


def test_an_empty_comparison_has_a_page() -> None:
    empty = msgspec.structs.replace(comparison_of(), groups=(), unmatched=())
    assert "There is nothing to compare." in page_of(empty)


def test_more_sides_than_colours_have_a_page() -> None:
    page = page_of(comparison_of([f"side {i}" for i in range(11)]))
    assert "side 0 vs. 10 others" in page
    assert "side 10 against side 0" in page


def test_foreign_text_is_never_markup(page: str) -> None:
    spoilt = parsed(render(evil_comparison(), "html", decisions=EVIL_DECISIONS, now=NOW))
    assert not spoilt.open
    assert "img" not in spoilt.seen
    assert spoilt.seen.count("script") == parsed(page).seen.count("script") == 4


def test_foreign_text_arrives_whole_in_the_charts() -> None:
    page = render(evil_comparison(), "html", now=NOW)
    assert data_of(page)["sides"] == [EVIL, EVIL]
    assert "\u2028" not in page[page.index('id="data"') :]


@pytest.mark.parametrize(("sides", "loads", "metrics"), [(5, 40, 32), (2, 300, 8), (12, 12, 24)])
def test_a_large_comparison_is_still_a_page_to_send(sides: int, loads: int, metrics: int) -> None:
    groups = [group_of(f"{rate} req/s", rate, sides, rate=rate) for rate in range(1, loads + 1)]
    grown = [msgspec.structs.replace(group, rows=_many(group.rows, metrics // len(group.rows))) for group in groups]
    large = msgspec.structs.replace(comparison_of([f"engine-{i}" for i in range(sides)]), groups=tuple(grown))
    page = page_of(large)
    assert len(page.encode()) < 1_500_000
    assert "in the CSV and the JSON" in page


def _many(rows: tuple[Row, ...], times: int) -> tuple[Row, ...]:
    names = [row.metric + ("" if time == 0 else f"-{time}") for time in range(times) for row in rows]
    return tuple(msgspec.structs.replace(row, metric=name) for row, name in zip(rows * times, names, strict=True))
