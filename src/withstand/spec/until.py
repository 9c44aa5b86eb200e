"""When a stage may end before its limit: as soon as what is asked of it is known."""

from typing import Annotated, Literal

import msgspec

from withstand.spec.arrivals import SECONDS_MAX, Seconds
from withstand.spec.precision import Precision
from withstand.spec.price import Money
from withstand.spec.promise import Promise


class Until(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whatever comes first ends the stage; its prompts or its duration are the limit."""

    known: tuple[Promise, ...] = ()
    """It is known whether all of these are kept, or that the queue has no end."""
    precise: tuple[Precision, ...] = ()
    """All of these numbers are known so exactly."""
    errors: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    """It is sure that more than this share of the requests fail; 1 = never."""
    queue: Literal["grows"] | None = None
    """It is sure that more and more requests are on their way: the server cannot keep up with the rate."""

    def over(self, other: "Until") -> "Until":
        """The other, with what is said here in place of its own."""
        said = {name: value for name, value in msgspec.structs.asdict(self).items() if value not in (None, ())}
        return msgspec.structs.replace(other, **said)


SEARCH_MIN_S = 10.0
"""In less nothing is found."""
Load = Annotated[float, msgspec.Meta(gt=0, le=1e6)]


class LimitSearch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest load that keeps its promises: which, and how hard it is looked for."""

    promises: Annotated[tuple[Promise, ...], msgspec.Meta(min_length=1)]
    axis: Literal["rate", "concurrency"] = "rate"
    start: Load | None = None
    """The first load; None = one user, or of rates 60 % of the most that a crowd was seen to get."""
    precision: Annotated[float, msgspec.Meta(ge=0.01, le=1)] = 0.05
    """It is over when the interval's upper end is so much above the lower one, as a share of it."""
    probe_s: Seconds | None = None
    """A load that tells nothing in this time lies near the limit; None = two minutes, more where few requests come."""
    rest_s: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 2.0
    """Between two loads, for the server to come to rest."""
    budget_s: Annotated[float, msgspec.Meta(ge=SEARCH_MIN_S, le=SECONDS_MAX)] | None = None
    """For all of it; None = as long as it takes."""
    cost: Money | None = None
    """What a million output tokens may cost at most: the fewer are asked for, the dearer they are."""
    price_per_hour: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """What an hour costs: the plan's, of all GPUs."""
