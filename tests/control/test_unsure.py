"""What an open load lacked is told, and by the rule that kept it open."""

import pytest

from withstand.control.probe import Look, Standing
from withstand.control.share import Share
from withstand.control.unsure import why_open
from withstand.spec import Promise, promise_of

TTFT, SUCCESS = promise_of("ttft:p90:500"), promise_of("success:99%")


@pytest.mark.parametrize(
    ("shares", "promises", "told"),
    [
        ((Share(0.913, 83.0),), (TTFT,), "its times had not settled"),
        (
            (Share(0.913, 83.0), Share(0.0, 83.0)),
            (TTFT, SUCCESS),
            "worth 83 independent requests, and 99 % success needs 597 to be known",
        ),
        (
            (Share(8.0, 83.0),),
            (TTFT,),
            "9.6 % of 83 independent requests is too near the 10 % that may break p90 TTFT ≤ 500 ms",
        ),
        ((None,), (TTFT,), "no request told anything of p90 TTFT ≤ 500 ms"),
        ((Share(0.0, 29.0),), (promise_of("ttft:p50:500"),), "29 independent requests, and 30 are needed"),
    ],
)
def test_what_was_missing_is_told(shares: tuple[Share | None, ...], promises: tuple[Promise, ...], told: str) -> None:
    look = Look(standing=Standing.OPEN, shares=shares, requests=2235)
    assert why_open(look, promises) == told
