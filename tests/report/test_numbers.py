import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.report.numbers import UNKNOWN, count, counted, number, per_second, percent, plain, seconds


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, UNKNOWN),
        (0.0, "0.00"),
        (0.344, "0.34"),
        (99.99, "99.99"),
        (99.996, "100.0"),
        (412.63, "412.6"),
        (999.96, "1,000"),
        (41263.4, "41,263"),
    ],
)
def test_times_and_rates_have_about_four_digits(value: float | None, text: str) -> None:
    assert number(value) == text


@given(st.floats(min_value=0.01, max_value=1e9))
def test_what_is_shown_is_near_what_is_meant(value: float) -> None:
    shown = float(number(value).replace(",", ""))
    assert abs(shown - value) <= max(0.005, 0.0006 * value) * 1.0001


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_only_all_is_a_hundred_percent(n: int, less: int) -> None:
    share = (n - min(less, n)) / n
    assert (percent(share) == "100 %") == (share >= 1 - 1e-12)


def test_shares_have_a_decimal_where_they_need_it() -> None:
    assert [percent(s) for s in (None, 0.0, 0.5, 0.999, 0.9999, 1.0)] == [
        UNKNOWN,
        "0 %",
        "50 %",
        "99.9 %",
        "over 99.9 %",
        "100 %",
    ]


def test_what_was_set_is_shown_as_it_was_set() -> None:
    assert [plain(v) for v in (None, 8.0, 0.25, 12500.0)] == [UNKNOWN, "8", "0.25", "12,500"]


def test_seconds_turn_into_minutes() -> None:
    assert [seconds(s) for s in (None, 0.887, 42.4, 59.7, 185)] == [
        UNKNOWN,
        "0.89 s",
        "42 s",
        "1 min 00 s",
        "3 min 05 s",
    ]


def test_one_is_singular() -> None:
    assert (counted(1, "stage"), counted(1234, "request"), count(None)) == ("1 stage", "1,234 requests", UNKNOWN)


def test_a_zero_has_no_sign() -> None:
    assert number(-0.001) == number(-0.0) == "0.00"
    assert number(-0.01) == "-0.01"


def test_a_slow_rate_keeps_its_digits() -> None:
    assert [per_second(rate) for rate in (0.00134, 0.0612, 0.1, 4.5, 0.0, None)] == [
        "0.00134", "0.0612", "0.10", "4.50", "0.00", "–",  # noqa: RUF001 - as tables have it
    ]  # fmt: skip
