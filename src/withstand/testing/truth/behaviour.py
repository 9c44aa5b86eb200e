"""The shape of a behaviour: a change of a few fields of a style, and what is to be known of it."""

from collections.abc import Callable
from typing import Any

import msgspec

from withstand.metrics.doubts import DoubtKind
from withstand.record import Status
from withstand.testing.truth.score import Pass
from withstand.testing.truth.style import Style

Change = Callable[[Style, float | None], Style]


class Behaviour(msgspec.Struct, frozen=True):
    """One way to answer."""

    change: Change
    does: str
    client: str
    """What a right client makes of it, beside the status."""
    status: Status = Status.OK
    """The status that a right client reports for a streamed request."""
    number: str = ""
    """What its number is; empty = it takes none."""
    default: float | None = None
    doubt: DoubtKind | None = None
    """What a careful client says against its own numbers, although the answer is a success."""
    either: bool = False
    """Whether a client may also count it as a success."""

    @property
    def success(self) -> bool | None:
        """Whether it counts as a success; None = both can be defended."""
        return None if self.either else self.status is Status.OK


def fixed(**fields: Any) -> Change:
    """Sets fields."""
    return lambda style, _: msgspec.structs.replace(style, **fields)


def body(lay: Pass) -> Change:
    """Adds something that is done to the events before they are framed."""
    return lambda style, _: msgspec.structs.replace(style, body=(*style.body, lay))


def wire(lay: Pass) -> Change:
    """Adds something that is done to the framed bytes."""
    return lambda style, _: msgspec.structs.replace(style, wire=(*style.wire, lay))


def whole_number(number: float | None) -> int | None:
    """A count, where one was given."""
    return None if number is None else int(number)
