"""Times as they are typed → seconds."""

import math

import click

from withstand.errors import UsageError
from withstand.spec.arrivals import SECONDS_MAX

_SECONDS_MIN = 1e-3
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Time(click.ParamType[float]):
    """``30s``, ``20m``, ``1.5h``; where it is plain what is meant, ``30`` too."""

    name = "time"

    def __init__(self, *, bare: bool, may_be_none: bool = False) -> None:
        self._bare = bare
        self._may_be_none = may_be_none

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float:  # noqa: ARG002
        """Seconds.

        Raises:
            UsageError: it is no time.
        """
        unit = value[-1:] if value[-1:] in _UNITS_S else ""
        try:
            seconds = float(value.removesuffix(unit)) * _UNITS_S.get(unit, 1.0 if self._bare else math.nan)
        except ValueError:
            seconds = math.nan
        if not (_SECONDS_MIN <= seconds < SECONDS_MAX or (self._may_be_none and seconds == 0)):
            what = "seconds, or a time with its unit" if self._bare else "a time with its unit"
            name = f"{param.opts[0]} " if param else ""
            raise UsageError(f"{name}{value}: give {what}, such as 30s, 20m or 1.5h.")
        return seconds


SECONDS = Time(bare=True)
SECONDS_OR_NONE = Time(bare=True, may_be_none=True)
"""A machine may be given back at once, and be back at once."""
WITH_UNIT = Time(bare=False)
