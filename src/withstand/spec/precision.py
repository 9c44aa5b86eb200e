"""How exactly a number is to be known before a stage may end."""

from typing import Annotated, Literal

import msgspec

from withstand.errors import UsageError
from withstand.spec.promise import spoken

_METRICS = ("ttft", "tpot", "e2el", "response")


class Precision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``ttft``, ``percentile`` 95 and ``within`` 0.05: the interval of the p95 of TTFT reaches 5 % to either side."""

    metric: Literal["ttft", "tpot", "e2el", "response"]
    within: Annotated[float, msgspec.Meta(ge=0.001, le=1)]
    percentile: Annotated[float, msgspec.Meta(gt=0, lt=100)] | None = None
    """None = the mean."""

    def __str__(self) -> str:
        """``p95 TTFT within 5 %``."""
        which = "mean" if self.percentile is None else f"p{self.percentile:g}"
        return f"{which} {spoken(self.metric)} within {100 * self.within:g} %"


def precision_of(text: str) -> Precision:
    """Of ``ttft:p95:5%`` or ``e2el:mean:2%``.

    Raises:
        UsageError: it is neither.
    """
    metric, _, rest = text.strip().lower().partition(":")
    which, _, percent = rest.partition(":")
    try:
        if metric in _METRICS and (which == "mean" or which.startswith("p")):
            percentile = None if which == "mean" else float(which[1:])
            told = {"metric": metric, "percentile": percentile, "within": float(percent.rstrip("% ")) / 100}
            return msgspec.convert(told, Precision)
    except (ValueError, msgspec.ValidationError):
        pass
    raise UsageError(
        f"{text!r} is no precision; write ttft:p95:5% (TTFT, TPOT, E2EL or response, mean or a percentile, in percent)."
    )
