"""Prices in a plan: one way to say each, and a target's own over the plan's."""

from typing import Any

import pytest

from withstand.errors import SpecError
from withstand.spec import Price, TokenPrice, Usage, over, parse_plan


def price(**tree: Any) -> Price:
    return parse_plan(tree).asked_price


def test_the_short_form_is_the_long_one() -> None:
    assert price(price_per_hour=2.5) == price(price={"per_hour": 2.5}) == Price(per_hour=2.5)
    assert parse_plan({"price_per_hour": 2.5}).price_per_hour is None, "code finds it in one place"
    assert price(price_per_hour=2.5, price={"per_kwh": 0.3}) == Price(per_hour=2.5, per_kwh=0.3)


def test_a_target_s_own_price_is_laid_over_the_plan_s() -> None:
    common = {"per_hour": 2.5, "per_kwh": 0.3, "against": {"input": 1.0, "output": 3.0}}
    own = price(price=common, target={"price": {"per_gpu_hour": 2.0, "gpus": 4}})
    assert own == Price(per_gpu_hour=2.0, gpus=4, per_kwh=0.3, against=TokenPrice(input=1.0, output=3.0))
    assert own.hour() == 8.0
    assert price(price=common, target={"price": {"per_kwh": 0.2}}).hour() == 2.5


def test_gpus_are_told_or_seen() -> None:
    assert Price(per_gpu_hour=2.0).hour() is None
    assert Price(per_gpu_hour=2.0).hour(0) is None
    assert Price(per_gpu_hour=2.0).hour(8) == 16.0
    assert Price(per_gpu_hour=2.0, gpus=4).hour(8) == 8.0
    assert Price(per_hour=5.0).hour(8) == 5.0
    assert Price().hour(8) is None


def test_what_was_told_last_wins() -> None:
    plan = Price(per_gpu_hour=2.0, gpus=4, usage=Usage(busy_hours=10))
    assert over(Price(per_hour=3.0), plan) == Price(per_hour=3.0, gpus=4, usage=Usage(busy_hours=10))
    assert over(None, plan) == plan


@pytest.mark.parametrize(
    ("tree", "named"),
    [
        ({"price_per_hour": -1}, "price_per_hour"),
        ({"price_per_hour": 1, "price": {"per_hour": 2}}, "give one of them"),
        ({"price": {"per_hour": 1, "per_gpu_hour": 2}}, r"\$\.price"),
        ({"price": {"per_hour": 0}}, r"\$\.price\.per_hour"),
        ({"price": {"dollars": 1}}, "dollars"),
        ({"price": {"against": {"input": 0, "output": 0}}}, r"\$\.price\.against"),
        ({"price": {"against": {"input": 0, "output": 1e-300}}}, r"\$\.price\.against"),
        ({"price_per_hour": 1e-300}, "price_per_hour"),
        ({"price": {"against": {"input": 1}}}, "output"),
        ({"price": {"usage": {"busy_hours": 25}}}, r"\$\.price\.usage\.busy_hours"),
        ({"target": {"price": {"gpus": 0}}}, r"\$\.target\.price\.gpus"),
    ],
)
def test_what_is_no_price_is_named(tree: dict[str, Any], named: str) -> None:
    with pytest.raises(SpecError, match=named):
        parse_plan(tree)
