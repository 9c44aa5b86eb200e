"""Limits of a key in virtual time: what a window lets through, and what a client is told of it."""

import math

from hypothesis import given
from hypothesis import strategies as st

from withstand.gateway.money.meter import Limit, Meter, Room
from withstand.gateway.money.rate_headers import lines_of
from withstand.gateway.money.window import WINDOW_S, Window
from withstand.gateway.routes import Dialect
from withstand.gateway.terms import KeyLimits

steps = st.lists(
    st.tuples(st.floats(0, 40, allow_nan=False), st.integers(1, 50), st.floats(0, 1)), min_size=1, max_size=80
)


@given(steps=steps, limit=st.integers(50, 120), start_s=st.floats(0, 1e6))
def test_no_window_ever_holds_more_than_the_limit(
    steps: list[tuple[float, int, float]], limit: int, start_s: float
) -> None:
    window, now_s, admitted = Window(), start_s, []
    for gap_s, amount, used in steps:
        now_s += gap_s
        if window.wait_s(amount, limit, now_s) == 0:
            window.add(amount, now_s)
            kept = round(amount * used)
            window.take_back(amount - kept, now_s)
            admitted.append((now_s, kept))
    for end_s, _ in admitted:
        assert sum(kept for at_s, kept in admitted if end_s - WINDOW_S < at_s <= end_s) <= limit


@given(steps=steps, limit=st.integers(50, 120))
def test_who_waits_as_long_as_told_comes_in_and_not_a_second_earlier(
    steps: list[tuple[float, int, float]], limit: int
) -> None:
    window, now_s = Window(), 0.0
    for gap_s, amount, _ in steps:
        now_s += gap_s
        wait_s = window.wait_s(amount, limit, now_s)
        if wait_s:
            assert 0 < wait_s <= WINDOW_S + 1
            if wait_s > 1:
                assert window.wait_s(amount, limit, now_s + wait_s - 1) > 0
            now_s += wait_s
            assert window.wait_s(amount, limit, now_s) == 0
        window.add(amount, now_s)


@given(steps=steps)
def test_a_window_forgets_all_and_stays_small(steps: list[tuple[float, int, float]]) -> None:
    window, now_s = Window(), 0.0
    for gap_s, amount, _ in steps:
        now_s += gap_s
        window.forget(now_s)
        window.add(amount, now_s)
        assert len(window._slots) <= WINDOW_S + 1
    reset_s = window.empty_in_s(now_s)
    assert 0 < reset_s <= WINDOW_S + 1
    assert window.empty_in_s(now_s + reset_s) == 0
    assert window.total == 0


@given(used=st.lists(st.integers(0, 400), min_size=1, max_size=30))
def test_what_was_held_and_not_used_is_free_again(used: list[int]) -> None:
    meter, limits = Meter(), KeyLimits(tpm=100_000)
    held = [meter.hold(limits, 200, 7, 1.0) for _ in used]
    assert (meter.tokens.total, meter.under_way, meter.held_nusd) == (200 * len(used), len(used), 7 * len(used))
    for each, tokens in zip(held, used, strict=True):
        meter.settle(each, tokens, 2.0)
    assert (meter.tokens.total, meter.under_way, meter.held_nusd) == (sum(used), 0, 0)


def test_a_settlement_after_the_window_is_over_takes_nothing_back_twice() -> None:
    meter, limits = Meter(), KeyLimits(tpm=1000)
    held = meter.hold(limits, 800, 0, 0.0)
    assert meter.hindrance(limits, 800, 100.0) is None
    meter.settle(held, 10, 100.0)
    assert meter.tokens.empty_in_s(100.0) == 0


def test_an_estimate_above_the_limit_waits_for_an_empty_window_and_not_for_ever() -> None:
    meter, limits = Meter(), KeyLimits(tpm=100)
    assert meter.hindrance(limits, 5000, 0.0) is None
    meter.hold(limits, 5000, 0, 0.0)
    assert meter.hindrance(limits, 1, 0.0) == (Limit.TOKENS, 61.0)


def test_concurrency_and_changed_limits_hold_at_once() -> None:
    meter, limits = Meter(), KeyLimits(concurrency=2, rpm=3)
    for _ in range(2):
        assert meter.hindrance(limits, 1, 0.0) is None
        held = meter.hold(limits, 1, 0, 0.0)
    assert meter.hindrance(limits, 1, 0.0) == (Limit.CONCURRENCY, 1.0)
    meter.settle(held, 1, 0.0)
    assert meter.hindrance(limits, 1, 0.0) is None
    lower = KeyLimits(rpm=1)
    hindrance = meter.hindrance(lower, 1, 10.0)
    assert hindrance == (Limit.REQUESTS, 51.0)
    assert meter.rooms(lower, 10.0) == {"requests": Room(1, 0, 51.0)}


def test_limits_are_told_in_both_forms() -> None:
    rooms = {"requests": Room(60, 59, 60.2), "tokens": Room(1000, 0, 0.1)}
    assert lines_of(rooms, Dialect.OPENAI, 0).decode().split("\r\n") == [
        "",
        "x-ratelimit-limit-requests: 60",
        "x-ratelimit-remaining-requests: 59",
        "x-ratelimit-reset-requests: 1m1s",
        "x-ratelimit-limit-tokens: 1000",
        "x-ratelimit-remaining-tokens: 0",
        "x-ratelimit-reset-tokens: 100ms",
    ]
    told = lines_of(rooms, Dialect.ANTHROPIC, 1_700_000_000.0).decode()
    assert "\r\nanthropic-ratelimit-requests-remaining: 59" in told
    assert "\r\nanthropic-ratelimit-tokens-reset: 2023-11-14T22:13:21Z" in told


@given(seconds=st.floats(0, 120))
def test_a_reset_is_never_told_too_early(seconds: float) -> None:
    line = lines_of({"tokens": Room(1, 1, seconds)}, Dialect.OPENAI, 0).decode().split("\r\n")[3]
    text = line.partition(": ")[2]
    if text.endswith("ms"):
        told = int(text[:-2]) / 1000
    else:
        minutes, _, rest = text[:-1].rpartition("m")
        told = int(minutes or 0) * 60 + int(rest)
    assert seconds - 1e-9 <= told <= math.ceil(seconds) + 1e-9
