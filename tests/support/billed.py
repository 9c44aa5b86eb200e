"""Stages as cost is computed of them: 100 s long, 100 prompt tokens and 50 output tokens a request."""

from typing import Any

import msgspec

from withstand.metrics.summary import Distribution, Load, StageSummary

_NONE = Distribution(n=0)


def stage(name: str = "a", rps: float = 1.0, good: float | None = None, **changes: Any) -> StageSummary:
    """``good`` of the requests kept the limits, with as large a share of the tokens; None = there were no limits."""
    n = int(rps * 100)
    one = StageSummary(
        name=name, load=Load(), attempted=n, completed=n, failed=0, duration_s=100.0, request_throughput=rps,
        request_goodput=None if good is None else good * rps, output_throughput=50 * rps,
        output_goodput=None if good is None else 50 * good * rps,
        total_input_tokens=100 * n, total_output_tokens=50 * n,
        ttft=_NONE, tpot=_NONE, itl=_NONE, e2el=Distribution(n=n, mean=2000.0), response=_NONE, ttft_scheduled=_NONE,
        lateness=_NONE,
    )  # fmt: skip
    return msgspec.structs.replace(one, **changes)
