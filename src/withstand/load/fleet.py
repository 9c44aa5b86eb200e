"""The workers of one stage: started, listened to, told to drain or stop. No bus: lines and files.

``Fleet`` is all that a stage knows; ``LocalFleet`` are processes of this machine. A worker that dies is noticed;
what it had finished is on file.
"""

import abc
import selectors
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

import msgspec

from withstand import clock
from withstand.errors import MeasureError
from withstand.load.child import Child
from withstand.load.job import Command, Job, Report
from withstand.load.member import Member

_LISTEN_S = 0.1
_decode = msgspec.json.Decoder(Report).decode
_encode = msgspec.json.Encoder().encode


class Fleet(abc.ABC):
    """A context: at its end no worker is left."""

    lead_ns: ClassVar[int]
    """From the order to start until the start: it must have reached every worker by then."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members

    @abc.abstractmethod
    def listen(self, timeout_s: float) -> None:
        """Wait for something to be said, and take it in."""

    @abc.abstractmethod
    def tell(self, command: Command) -> None:
        """Give a command to all that live. A start is an instant of our own clock."""

    @abc.abstractmethod
    def kill(self) -> None:
        """End those that do not obey."""

    @abc.abstractmethod
    def give_up(self, member: Member, why: str) -> None:
        """End one, and do not wait for it any more."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let all go, and see that they have gone."""

    def wait_ready(self, timeout_s: float) -> None:
        """Until every worker is ready; what the spool holds by now is what they begin with.

        Raises:
            MeasureError: one said why not, or died.
        """
        until_ns = clock.now_ns() + int(timeout_s * 1e9)
        while not all(m.ready for m in self.members):
            self.listen(_LISTEN_S)
            for member in self.members:
                if member.ended:
                    raise MeasureError(member.report.error or f"A worker did not start: {member.why}.")
            if clock.now_ns() > until_ns:
                raise MeasureError(f"The workers were not ready within {timeout_s:g} s; is the machine overloaded?")

    def start(self) -> int:
        """Agree on an instant at which all begin; it."""
        start_ns = clock.now_ns() + self.lead_ns
        self.tell(Command(start_ns=start_ns))
        return start_ns

    @property
    def ended(self) -> bool:
        """Whether all have ended."""
        return all(m.ended for m in self.members)

    def error(self) -> str | None:
        """What the first of them complained of."""
        return next((m.report.error for m in self.members if m.report.error), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class LocalFleet(Fleet):
    """Processes of this machine: they share our monotonic clock, our files, and a pipe each."""

    lead_ns = 20_000_000

    def __init__(self, jobs: Sequence[Job], log: Path) -> None:
        super().__init__([Member(job) for job in jobs])
        self._selector = selectors.DefaultSelector()
        self._children = [Child("withstand.load.worker", log) for _ in jobs]
        for member, child in zip(self.members, self._children, strict=True):
            child.send(_encode(member.job))
            self._selector.register(child, selectors.EVENT_READ, member)

    def listen(self, timeout_s: float) -> None:
        """Wait for something to be said, and take it in."""
        for key, _ in self._selector.select(timeout_s):
            child, member = key.fileobj, key.data
            assert isinstance(child, Child)
            for line in child.hear():
                member.heard(_decode(line))
            if child.ended:
                self._selector.unregister(child)
                member.gone(child.why())

    def tell(self, command: Command) -> None:
        """Give a command to all that live."""
        for child in self._living():
            child.send(_encode(command))

    def kill(self) -> None:
        """End those that do not obey."""
        for child in self._living():
            child.kill()

    def give_up(self, member: Member, why: str) -> None:
        """End one, and do not wait for it any more."""
        self._children[self.members.index(member)].kill()
        member.gone(why)

    def _living(self) -> list[Child]:
        return [c for c, m in zip(self._children, self.members, strict=True) if not m.ended]

    def close(self) -> None:
        """Let all go, and see that they have gone."""
        for child in self._children:
            child.dismiss()
        for child in self._children:
            child.end()
        self._selector.close()
