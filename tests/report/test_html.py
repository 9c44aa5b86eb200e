import json
import re
import unicodedata
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages import Tags, parsed
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.scatter import Scatter
from withstand.metrics.series import Ecdf
from withstand.metrics.summary import Summary
from withstand.report.charts import charts_json
from withstand.report.html import render_html
from withstand.report.markup import joined, tag, unbroken

EVIL = "</script><img src=x onerror=alert(1)>\u2028&lt;"
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def rendered(sample: Any) -> str:
    return render_html(sample.summary, sample.series, sample.about)


def evil(sample: Any) -> Any:
    """The same run, with foreign text that would like to be markup wherever foreign text can stand."""
    stages = tuple(
        msgspec.structs.replace(s, name=f"{EVIL}{i}", phase=EVIL, statuses={EVIL: 1})
        for i, s in enumerate(sample.summary.stages)
    )
    summary = msgspec.structs.replace(sample.summary, stages=stages, target=EVIL, backend=EVIL, model_id=EVIL)
    about = msgspec.structs.replace(
        sample.about, title=EVIL, engine=EVIL, machine={EVIL: EVIL}, plan={EVIL: [{"name": EVIL}]}
    )
    return msgspec.structs.replace(sample, summary=summary, about=about)


@pytest.fixture(scope="module")
def page(sample: Any) -> str:
    return rendered(sample)


def test_the_page_is_one_file_that_asks_for_nothing(page: str) -> None:
    tags = parsed(page)
    assert not tags.open
    assert not [value for name, value in tags.attributes if name in {"src", "href"} and not str(value).startswith("#")]
    assert not {"link", "img", "iframe"} & set(tags.seen)
    assert "default-src 'none'" in page


def test_the_page_says_what_was_measured_and_whether_it_stands(page: str, sample: Any) -> None:
    assert "<h1>SmolLM2-135M-Instruct</h1>" in page
    assert "Nothing forbids these numbers; 3 doubts to read beside them." in page
    assert (
        page.index('id="doubts"') < page.index('id="figures"') < page.index('id="stages"') < page.index('id="charts"')
    )
    for stage in sample.summary.stages:
        assert f'<th scope="row">{stage.name}</th>' in page


def test_a_run_beyond_doubt_has_no_section_of_doubts(single: Any) -> None:
    stage = msgspec.structs.replace(single.summary.stages[0], doubts=())
    summary = msgspec.structs.replace(single.summary, stages=(stage,))
    page = render_html(summary, single.series, single.about)
    assert 'id="doubts"' not in page
    assert "no doubt was raised" in page


def test_foreign_text_is_never_markup(sample: Any) -> None:
    plain, spoilt = parsed(rendered(sample)), parsed(rendered(evil(sample)))
    assert not spoilt.open
    assert "img" not in spoilt.seen
    assert spoilt.seen.count("script") == plain.seen.count("script") == 4


def test_foreign_text_arrives_whole_in_the_charts(sample: Any) -> None:
    found = DATA.search(rendered(evil(sample)))
    assert found
    assert "\u2028" not in found[1]
    assert json.loads(found[1])["stages"][2]["name"] == f"{EVIL}2"


def test_a_run_of_many_stages_is_still_a_page_to_send(sample: Any) -> None:
    times = 4
    summary = msgspec.structs.replace(sample.summary, stages=sample.summary.stages * times)
    page = render_html(summary, sample.series * times, sample.about)
    assert len(page.encode()) < 1_500_000


def test_a_run_without_stages_has_a_page(sample: Any) -> None:
    assert "Nothing was measured." in render_html(Summary(stages=()), (), sample.about)


def test_thinning_keeps_ends_and_extremes(single: Any) -> None:
    values = [float((i * 7919) % 1500) for i in range(1500)]
    series = msgspec.structs.replace(
        single.series[0],
        ecdf={
            "ttft": Ecdf(share=[i / 199 for i in range(200)], value_ms=[float(i * i) for i in range(200)], count=200)
        },
        scatter={"ttft": Scatter(at_s=[i / 10 for i in range(1500)], value_ms=values)},
    )
    (stage,) = json.loads(charts_json(single.summary, (series,), 1))["stages"]
    (whole,) = json.loads(charts_json(single.summary, (series,), 10**6))["stages"]
    assert (len(whole["ecdf"]["ttft"]), len(whole["scatter"]["ttft"][0])) == (200, 1500)
    assert stage["ecdf"]["ttft"][0] == 0
    assert stage["ecdf"]["ttft"][-1] == pytest.approx(199 * 199, rel=1e-3)
    assert len(stage["scatter"]["ttft"][1]) < 100
    assert {0, 1499} <= set(stage["scatter"]["ttft"][1])


def test_an_open_interval_stays_open(sample: Any) -> None:
    stage = json.loads(charts_json(sample.summary, sample.series, 10**6))["stages"][0]
    value, low, high = stage["metrics"]["ttft"]["p99"]
    assert low < value
    assert high is None


@given(st.text(), st.text())
def test_text_in_an_element_or_an_attribute_comes_back_as_text(content: str, attribute: str) -> None:
    texts: list[str] = []
    parser = Tags()
    parser.handle_data = texts.append  # type: ignore[method-assign]
    parser.feed(tag("p", content, title=attribute).replace("\r", "&#13;"))
    parser.close()
    assert parser.seen == ["p"]
    assert "".join(texts) == "".join(
        "\ufffd" if unicodedata.category(c) == "Cc" and c not in "\t\n\r" else c for c in content
    )


def test_markup_is_not_escaped_twice() -> None:
    inner = tag("b", "a & b")
    assert tag("p", inner, "<", hidden=True, class_="x", open=False) == '<p hidden class="x"><b>a &amp; b</b>&lt;</p>'
    assert joined(inner, inner) == inner + inner


def test_a_number_and_its_unit_stay_on_one_line() -> None:
    text = "13 % too low, 51.9 ms, 118 tok/s, 3 steps, 4 at once"
    assert unbroken(text) == "13\u00a0% too low, 51.9\u00a0ms, 118\u00a0tok/s, 3 steps, 4 at once"


def test_a_figure_that_a_doubt_takes_away_is_struck_and_says_why(single: Any) -> None:
    """The page led with them in the largest type, as if nothing were the matter."""
    limited = Doubt(DoubtKind.RATE_LIMITED, "39 of 40 requests were answered 429.", "Raise it.", blocking=True)
    (stage,) = single.summary.stages

    def shown(*doubts: Doubt) -> str:
        summary = msgspec.structs.replace(single.summary, stages=(msgspec.structs.replace(stage, doubts=doubts),))
        page = render_html(summary, single.series, single.about)
        return page[page.index('id="figures"') : page.index('id="stages"')]

    assert shown(limited).count("✗ does not stand: rate limited") >= 4
    assert shown(limited).count("<s>") == shown(limited).count("does not stand")
    assert "<s>" not in shown()
