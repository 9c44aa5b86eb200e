"""What is played to a client: every behaviour of the truth server, and some that are a matter of lengths and times.

A wrong answer is mixed half and half with right ones, since the question is whether a client tells them apart, and many
end with an error of their own when nothing at all succeeded. A right answer is played alone.
"""

from typing import Final

import msgspec

from withstand.record import Status
from withstand.testing import Schedule
from withstand.testing.truth.behaviours import BEHAVIOURS

TOKENS: Final = 16
_SCHEDULE: Final = Schedule(ttft_ms=200, itl_ms=40, tokens=TOKENS)
_TAILS: Final = ("joined", "stall")


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    name: str
    does: str
    behaviour: str | dict[str, float]
    requests: int = 5
    schedule: Schedule = _SCHEDULE
    tail: bool = False
    """Whether its gaps have one, which a client that keeps them can show."""
    model: str = "truth"
    """The truth server reads an answer's length in it."""


def trials() -> list[Trial]:
    """All of them, right answers first."""
    named = [_trial(name) for name in BEHAVIOURS]
    right = [trial for trial in named if isinstance(trial.behaviour, str)]
    wrong = [trial for trial in named if not isinstance(trial.behaviour, str)]
    return [*right, *_FURTHER, *wrong]


def _trial(name: str) -> Trial:
    behaviour = BEHAVIOURS[name]
    if behaviour.status is Status.OK:
        return Trial(name=name, does=behaviour.does, behaviour=name, tail=name in _TAILS)
    return Trial(name=name, does=behaviour.does, behaviour={"plain": 0.5, name: 0.5}, requests=10)


_FURTHER: Final = (
    Trial(name="early stop", does="fewer tokens than were asked for", behaviour="plain", model="truth:n=10"),
    Trial(
        name="uneven gaps",
        does="gaps drawn from an exponential distribution with the same mean",
        behaviour="plain",
        requests=10,
        tail=True,
        schedule=msgspec.structs.replace(_SCHEDULE, jitter="exp"),
    ),
)
