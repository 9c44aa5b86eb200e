"""What the user pays: for an hour of the machine, for power, and what tokens cost elsewhere. Currency is the user's.

It says what was told, and computes nothing but the price of an hour.
"""

from typing import Annotated

import msgspec

MONEY_MIN, MONEY_MAX = 1e-9, 1e9
"""Beyond, no currency is meant, and quotients have no end."""
Money = Annotated[float, msgspec.Meta(ge=MONEY_MIN, le=MONEY_MAX)]
TokenMoney = Annotated[float, msgspec.Meta(ge=0, le=MONEY_MAX)]
"""Of tokens: input may be free."""
_HOURS = ("per_hour", "per_gpu_hour")


class TokenPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody else asks for a million tokens."""

    input: TokenMoney
    output: TokenMoney
    cached_input: TokenMoney | None = None
    """For prompt tokens that he finds in his prefix cache; None = as all others."""

    def __post_init__(self) -> None:
        """Tokens that cost nothing cannot be undercut."""
        if self.input + self.output < MONEY_MIN:
            raise ValueError("input and output are both free: no machine is cheaper")


class Usage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much a machine is needed in a day, and how soon it may be given back."""

    busy_hours: Annotated[float, msgspec.Meta(gt=0, le=24)] = 24.0
    """In which requests come; in the rest of the day there are none."""
    requests_per_day: Annotated[float, msgspec.Meta(gt=0, le=1e12)] | None = None
    """None = in those hours as many as the machine was seen to sustain."""
    gaps_s: tuple[Annotated[float, msgspec.Meta(ge=0, le=86_400)], ...] = ()
    """Between the requests of a day, one by one, in the place of the two above, which take them to be random."""
    idle_timeout_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 300.0
    """It is given back when nothing was to do for so long."""
    cold_start_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)] | None = None
    """Until it answers again; None = what cold answers took longer than warm ones, or the embedded engine took."""


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that was told; None = nobody has."""

    per_hour: Money | None = None
    """Of all that serves."""
    per_gpu_hour: Money | None = None
    """Of one GPU, in the place of ``per_hour``."""
    gpus: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """None = as many as were seen to be in use."""
    per_kwh: Money | None = None
    """Power that the hour's price does not contain."""
    against: TokenPrice | None = None
    """What the same tokens cost elsewhere."""
    usage: Usage | None = None
    """A day, to weigh a machine that is always on against one that is given back."""

    def __post_init__(self) -> None:
        """One bill."""
        if self.per_hour is not None and self.per_gpu_hour is not None:
            raise ValueError("per_hour and per_gpu_hour are two prices of one hour; give one of them")

    def hour(self, gpus_seen: int | None = None) -> float | None:
        """What an hour costs; None = not told, or nobody knows of how many GPUs."""
        gpus = self.gpus if self.gpus is not None else gpus_seen
        if self.per_gpu_hour is None:
            return self.per_hour
        return None if not gpus else self.per_gpu_hour * gpus


def over(told: Price | None, common: Price) -> Price:
    """What was told of one thing, laid over what was told of all: a price of an hour takes the place of either."""
    if told is None:
        return common
    own = {name: value for name in told.__struct_fields__ if (value := getattr(told, name)) is not None}
    hidden = dict.fromkeys(_HOURS) if own.keys() & set(_HOURS) else {}
    return msgspec.structs.replace(common, **{**hidden, **own})
