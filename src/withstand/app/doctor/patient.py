"""What is examined, and with what: the path, the engine itself, our echo engine, and how much may be asked."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from withstand import clock
from withstand.app.doctor.echo import Echo
from withstand.app.doctor.line import Line
from withstand.app.endpoint import Endpoint
from withstand.doctor.finding import Finding, Question
from withstand.doctor.pace import Pace


class Dose(msgspec.Struct, frozen=True):
    """How much is asked for."""

    tokens: int = 96
    """Of a long answer."""
    pairs: int = 40
    """Of requests, with and without the hop."""
    patience_s: float = 15.0
    """For an answer that may never come."""
    itl_ms: float = 5.0
    """Of our echo engine."""
    notice_s: float = 4.0
    """For an engine to notice that its client has left."""
    seconds: float = 60.0
    """That all of it may take."""
    more: str = "Give the examination more time by --seconds."
    """The cure where that was too little."""


class Patient:
    """A path under examination."""

    def __init__(self, path: Line, direct: Line | None, echo: Echo | None, dose: Dose) -> None:
        self.path = path
        self.direct = direct
        self.echo = echo
        self.dose = dose
        self.pace: Pace | None = None
        """Of its answers, once some were heard."""
        self.began_ns = clock.now_ns()

    def give_time(self, share: float) -> None:
        """Until so much of the whole is over."""
        for line in filter(None, (self.path, self.direct)):
            line.until_ns = self.began_ns + int(share * self.dose.seconds * 1e9)

    def left_out(self, question: Question) -> Finding:
        """Its time was over."""
        return question.not_tried(f"left out: {self.dose.seconds:g} s are too few for so slow a path", self.dose.more)

    def learn_length_field(self, field: str) -> None:
        """By which field a length can be asked for."""
        self.path.length_field = field
        if self.direct:
            self.direct.length_field = field

    @contextmanager
    def brief(self) -> Iterator[Line]:
        """A line of its own to the path, that gives up sooner."""
        line = Line(self.path.endpoint, model=self.path.model, patience_s=self.dose.patience_s)
        line.length_field, line.asking = self.path.length_field, self.path.asking
        line.until_ns, line.endless_fails = self.path.until_ns, self.path.endless_fails
        try:
            yield line
        finally:
            self.path.asked += line.asked
            line.close()


def mark() -> str:
    """A word by which a request is found again in a log."""
    return f"mark-{uuid.uuid4().hex}"


def wait_for(happened: Callable[[], bool], limit_s: float, poll_s: float = 0.02) -> bool:
    """Ask again and again until it has; False = it has not in that time."""
    until_ns = clock.now_ns() + int(limit_s * 1e9)
    while not happened():
        if clock.now_ns() > until_ns:
            return False
        clock.sleep_s(poll_s)
    return True


def model_of(endpoint: Endpoint, wanted: str | None) -> str | None:
    """The path's name of a model where the engine itself lists it too, else what the engine lists first."""
    return wanted if wanted in endpoint.models or not endpoint.models else endpoint.models[0]
