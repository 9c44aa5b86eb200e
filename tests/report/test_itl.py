"""The ITL's other forms in the text."""

from typing import Any

import msgspec
import pytest

from withstand.metrics.summary import Distribution, Summary
from withstand.report.itl import itl_lines


def of(p50_ms: float, p99_ms: float) -> Distribution:
    return Distribution(n=500, percentiles={"p50": p50_ms, "p99": p99_ms})


@pytest.mark.parametrize("apart", [True, False])
def test_a_form_is_told_where_its_median_is_another(single: Any, apart: bool) -> None:
    per_token = of(5.0, 6.21) if apart else of(19.5, 24.0)
    stage = msgspec.structs.replace(
        single.summary.stages[0], itl=of(20.0, 25.0), itl_per_token=per_token, itl_request_mean=of(20.1, 20.9)
    )
    told = ["ITL per token, p50 / p99 in ms: rate-4 5.00 / 6.21"] if apart else []
    assert list(itl_lines(Summary(stages=(stage,)))) == told


def test_what_is_not_known_is_not_told(single: Any) -> None:
    unknown = Distribution(n=0)
    stage = msgspec.structs.replace(single.summary.stages[0], itl_per_token=unknown, itl_request_mean=unknown)
    assert not list(itl_lines(Summary(stages=(stage,))))
