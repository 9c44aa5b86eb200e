"""What a run means for a bill, in words: cheaper from somewhere on, never, and by how much; a day."""

from typing import Any

import msgspec
import pytest

from billed import stage
from pages import CHROMIUM, attribute, browse, measured
from withstand.metrics.cost import priced
from withstand.metrics.economy import economy_of, largest_seen
from withstand.metrics.energy import Energy
from withstand.metrics.summary import Interval, StageSummary, Summary
from withstand.report import economy
from withstand.report.html import render_html
from withstand.spec import Price, TokenPrice, Usage

TOKENS = TokenPrice(input=3.0, output=6.0)


def billed(*stages: StageSummary, **price: Any) -> Summary:
    told = Price(**{"per_hour": 3.6, "against": TOKENS} | price)
    shown = tuple(
        priced(one, told, 0.99, {"request_throughput": Interval(0.9 * rate, 1.1 * rate)})
        for one in stages
        if (rate := one.request_throughput) is not None
    )
    return Summary(stages=shown, economy=economy_of(shown, told, largest_seen(shown)))


def said(summary: Summary) -> list[str]:
    return list(economy.sentences(summary))


def test_cheaper_from_somewhere_on() -> None:
    elsewhere, since, at = said(billed(stage("low", 1), stage("high", 4)))
    assert elsewhere == "By the token 1,000 such requests cost 0.6."
    assert since == (
        "The machine is cheaper from 1.67 req/s on, around the clock: 14.4 million input and 7.2 million output "
        "tokens a day, 41.7 % of the largest rate."
    )
    assert at == (
        "At 4.00 req/s, the most that was seen (high), it is 2.4 times cheaper, "
        "between 2.16 times cheaper and 2.64 times cheaper."
    )


def test_never() -> None:
    _, never, at = said(billed(stage("low", 1, 1.0), stage("high", 4, 0.5)))
    assert never == (
        "The machine is never cheaper at the largest rate that was seen: "
        "it would have to answer 1.67 req/s around the clock."
    )
    assert at == (
        "At 1.00 req/s, the most that keeps the limits (low), it is 1.67 times dearer, "
        "between 1.85 times dearer and 1.52 times dearer."
    )


def test_a_day_of_one_that_is_always_on_and_of_one_that_is_given_back() -> None:
    usage = Usage(busy_hours=10, requests_per_day=500, idle_timeout_s=300, cold_start_s=45)
    always, given_back = said(billed(stage("s", 4), against=None, usage=usage))
    assert always == "Always on, a day costs 86.4: 500 requests need 0.1 % of it, 86.3 is paid for idling."
    assert given_back == (
        "Given back when idle, it costs 35.6 a day: up for 9.9 h, 8.39 cold starts of 45 s, "
        "for which 2.7 % of requests wait."
    )


def test_what_a_day_lacks_is_named() -> None:
    usage = Usage(requests_per_day=500)
    assert "--price-per-hour" in (economy.why_no_day(Summary(stages=(stage(),))) or "")
    assert "--cold-start" in (economy.why_no_day(billed(stage("s", 4), against=None, usage=usage)) or "")
    told = msgspec.structs.replace(usage, cold_start_s=45)
    assert economy.why_no_day(billed(stage("s", 4), against=None, usage=told)) is None


def test_nothing_is_said_of_what_was_not_asked() -> None:
    assert said(billed(stage(), against=None)) == []
    assert said(Summary(stages=(stage(),))) == []


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1400, 800])
def test_the_page_holds_the_widest_bill(width: int, sample: Any, tmp_path: Any) -> None:
    energy = Energy(gpus=7, gpus_seen=8, joules=1e6, mean_watts=5e3, by="power", per_output_token_j=1.5,
                    per_request_j=90.0, kwh_per_million_output=0.42, cpu_per_output_token_j=0.1)  # fmt: skip
    told = Price(per_gpu_hour=2.5, gpus=8, per_kwh=0.3, against=TOKENS)
    sure = {"output_throughput": Interval(90, 110), "request_throughput": Interval(2, 3)}
    stages = tuple(
        priced(msgspec.structs.replace(one, energy=energy), told, 0.99, sure) for one in sample.summary.stages
    )
    usage = Usage(requests_per_day=500, cold_start_s=60)
    found = economy_of(stages, msgspec.structs.replace(told, usage=usage), largest_seen(stages))
    summary = msgspec.structs.replace(sample.summary, stages=stages, economy=found)
    document, console = browse(measured(render_html(summary, sample.series, sample.about)), tmp_path, width)
    assert console == ""
    body = attribute(document, "body")
    assert body
    assert int(body) <= width
    assert "Given back when idle" in document
    assert 'id="energy"' in document
