"""What an operator promises of a load: a share of requests that keeps a limit, or that succeeds."""

import math
from typing import Annotated, Literal

import msgspec

from withstand.errors import UsageError
from withstand.spec.price import MONEY_MAX, MONEY_MIN

_METRICS = ("ttft", "tpot", "itl", "e2el", "response")
_COST = "cost:"
_WANTED = (
    "ttft:p95:500 (TTFT, TPOT, ITL, E2EL or response, a percentile, and its limit in ms), success:99% "
    "or cost:0.8 (of a million output tokens)"
)


class Promise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``ttft`` with ``share`` 0.95 and ``limit`` 500: the p95 of TTFT is 500 ms at most.

    That is: of all requests 95 % have their first token after 500 ms at most. A request that failed keeps no promise.
    ``success`` has no limit: so large a share of all requests is answered well.
    """

    metric: Literal["ttft", "tpot", "itl", "e2el", "response", "success"]
    share: Annotated[float, msgspec.Meta(gt=0, lt=1)]
    limit: Annotated[float, msgspec.Meta(gt=0, le=1e10)] | None = None
    """In ms."""

    def __post_init__(self) -> None:
        """A limit is for times, and they need one."""
        if (self.limit is None) != (self.metric == "success"):
            raise ValueError("a promise of success has no limit, every other has one")

    def __str__(self) -> str:
        """``p95 TTFT ≤ 500 ms``."""
        if self.limit is None:
            return f"{100 * self.share:g} % success"
        return f"p{100 * self.share:g} {spoken(self.metric)} ≤ {self.limit:g} ms"


def spoken(metric: str) -> str:
    """``TTFT``, ``response time``."""
    return "response time" if metric == "response" else metric.upper()


def promise_of(text: str) -> Promise:
    """Of ``ttft:p95:500`` or ``success:99%``.

    Raises:
        UsageError: it is neither.
    """
    metric, *rest = text.strip().lower().split(":")
    try:
        if metric == "success" and len(rest) == 1:
            return _checked("success", float(rest[0].removesuffix("%")), None)
        if metric in _METRICS and len(rest) == 2 and rest[0].startswith("p"):
            return _checked(metric, float(rest[0][1:]), float(rest[1].removesuffix("ms")))
    except (ValueError, msgspec.ValidationError):
        pass
    raise UsageError(f"{text!r} is no promise; write {_WANTED}.")


def is_cost(text: str) -> bool:
    """Whether it promises a price, and so nothing of single requests."""
    return text.strip().lower().startswith(_COST)


def cost_of(text: str) -> float:
    """Of ``cost:0.8``.

    Raises:
        UsageError: it is no price.
    """
    try:
        price = float(text.strip().lower().removeprefix(_COST))
    except ValueError:
        price = math.nan
    if not MONEY_MIN <= price <= MONEY_MAX:
        raise UsageError(f"{text!r} is no promise; write {_WANTED}.")
    return price


def _checked(metric: str, percent: float, limit: float | None) -> Promise:
    return msgspec.convert({"metric": metric, "share": percent / 100, "limit": limit}, Promise)
