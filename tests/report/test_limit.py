"""What a search for a limit has found, in every form: the sentence first, and nothing said that is not known."""

import csv
import io
import json
from typing import Any

import pytest
from msgspec.structs import replace

from limits_found import HOLDS, TTFT, probe, searched_limit
from pages import parsed
from withstand.control.floor import Floor
from withstand.control.probe import Look, Standing
from withstand.metrics.summary import Interval
from withstand.report.csv import csv_text
from withstand.report.html import render_html
from withstand.report.json import summary_json
from withstand.report.limit import sentence
from withstand.report.markdown import markdown

NOWHERE = Interval(None, None)
LIMIT = searched_limit()
DOUBT = "our own client's error could have made it (TTFT by up to 3 ms)"


def price(low: float | None, high: float | None, load: float | None) -> Floor:
    return Floor(per_million=0.8, load=load, interval=Interval(low, high))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "4.11 req/s, between 4 and 4.2: above, p95 TTFT ≤ 500 ms breaks first."),
        ({"first_broken": None}, "4.11 req/s, between 4 and 4.2: above, the queue has no end."),
        ({"interval": Interval(4.0, None)}, "At least 4 req/s: no load was found that breaks a promise."),
        (
            {"interval": Interval(None, 4.2)},
            "Below 4.2 req/s: no load was found that keeps the promises. Above, p95 TTFT ≤ 500 ms breaks first.",
        ),
        (
            {"interval": NOWHERE, "ended": "the budget of 1 min leaves no time for another load"},
            (
                "Nothing is known: no load was found that keeps the promises, and none that breaks them. "
                "It ended there: the budget of 1 min leaves no time for another load."
            ),
        ),
        ({"interval": NOWHERE, "probes": ()}, "Nothing is known: no load was tried so far."),
        (
            {"interval": NOWHERE, "probes": (), "ended": "the budget of 1 min leaves no time for another load"},
            (
                "Nothing is known: no load was tried. "
                "It ended there: the budget of 1 min leaves no time for another load."
            ),
        ),
        (
            {"interval": Interval(4.0, None), "probes": (HOLDS, probe(8.0, Standing.OPEN, 30.0, DOUBT))},
            f"At least 4 req/s: no load was found that breaks a promise. More is not known: at 8 req/s {DOUBT}.",
        ),
        (
            {"probes": (HOLDS, probe(4.2, Standing.BREAKS, 30.0, limited=28))},
            (
                "4.11 req/s, between 4 and 4.2: above, p95 TTFT ≤ 500 ms is broken by a limiter (429), so this is its "
                "limit and not the engine's."
            ),
        ),
        (
            {"floor": price(2.0, 2.2, 2.1)},
            (
                "4.11 req/s, between 4 and 4.2: above, p95 TTFT ≤ 500 ms breaks first. "
                "From 2.1 req/s on 1M output tokens cost 0.8 at most."
            ),
        ),
        (
            {"floor": price(6.0, 6.2, 6.1)},
            (
                "4.11 req/s, between 4 and 4.2: above, p95 TTFT ≤ 500 ms breaks first. "
                "From 6.1 req/s on 1M output tokens cost 0.8 at most: there is no load that keeps both."
            ),
        ),
        (
            {"floor": price(4.05, 4.15, 4.1)},
            (
                "4.11 req/s, between 4 and 4.2: above, p95 TTFT ≤ 500 ms breaks first. From 4.1 req/s on 1M "
                "output tokens cost 0.8 at most: whether a load keeps both is not known."
            ),
        ),
        (
            {"alone": Look(standing=Standing.BREAKS, promise=TTFT)},
            "Nothing can be promised: p95 TTFT ≤ 500 ms is broken for one user at a time.",
        ),
        (
            {"alone": Look(standing=Standing.OPEN, doubt=DOUBT)},
            f"Nothing is known, already of one user at a time: {DOUBT}.",
        ),
    ],
)
def test_the_sentence_says_what_is_known_and_what_is_in_the_way(changes: dict[str, Any], said: str) -> None:
    assert sentence(replace(LIMIT, **changes)) == said


def test_of_many_requests_a_second_no_power_of_ten_is_shown() -> None:
    assert sentence(replace(LIMIT, load=1728.4)).startswith("1,730 req/s")


def test_markdown_begins_with_the_sentence_and_has_the_table(sample: Any) -> None:
    text = markdown(sample.summary, LIMIT)
    assert text.startswith("**4.11 req/s, between 4 and 4.2: above,")
    assert "| 4.2 | 200 | 15 % | 5 % | breaks: p95 TTFT ≤ 500 ms |" in text
    assert "promised: p95 TTFT ≤ 500 ms and 99 % success" in text
    assert "between 4 and 4.2" not in markdown(sample.summary)


def test_json_has_all_of_it(sample: Any) -> None:
    told = json.loads(summary_json(sample.summary, LIMIT))["limit"]
    assert told["interval"] == {"low": 4.0, "high": 4.2}
    assert [one["look"]["standing"] for one in told["probes"]] == ["holds", "breaks"]
    assert told["probes"][0]["times"][0] == {"value": 400.0, "low": 360.0, "high": None}
    assert "limit" not in json.loads(summary_json(sample.summary))


def test_csv_has_what_was_found_beside_the_stage_that_was_tried(sample: Any) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(sample.summary, LIMIT))))
    by_stage = {row["stage"]: row for row in rows}
    tried = by_stage["rate-4"]
    assert (tried["probe_load"], tried["probe_found"], tried["probe_broken_share"]) == ("4.0", "holds", "0.01")
    assert tried["limit_high"] == "4.2"
    assert by_stage["prompt-32"]["probe_found"] == ""
    assert "limit" not in next(csv.DictReader(io.StringIO(csv_text(sample.summary))))


def test_the_page_has_a_chart_of_each_share_and_of_each_time_and_the_table(sample: Any) -> None:
    page = render_html(sample.summary, sample.series, sample.about, LIMIT)
    assert parsed(page).open == []
    assert page.index('id="limit"') < page.index('id="figures"')
    assert page.count('data-chart="limit"') == 3  # no time is promised with success
    assert 'data-chart="limit"' not in render_html(sample.summary, sample.series, sample.about)


@pytest.mark.parametrize(("interval", "is_said"), [(NOWHERE, False), (Interval(None, 4.2), True)])
def test_the_page_speaks_of_a_shaded_part_where_there_is_one(interval: Interval, sample: Any, *, is_said: bool) -> None:
    page = render_html(sample.summary, sample.series, sample.about, replace(LIMIT, load=None, interval=interval))
    assert ("in the shaded part" in page) is is_said


def test_a_name_in_a_doubt_is_no_markup(sample: Any) -> None:
    evil = probe(4.1, Standing.OPEN, 5.0, "<script>alert(1)</script>")
    page = render_html(sample.summary, sample.series, sample.about, replace(LIMIT, probes=(evil,)))
    assert "<script>alert(1)" not in page


def test_what_an_open_load_lacked_stands_in_its_line(sample: Any) -> None:
    text = markdown(sample.summary, replace(LIMIT, probes=(HOLDS, probe(4.1, Standing.OPEN, 2.0))))
    assert "open: worth 200 independent requests, and 99 % success needs 597 to be known" in text
