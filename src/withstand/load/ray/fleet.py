"""The run's side of a fleet on Ray: what the bridge says of the workers is told to the members, and back."""

import importlib.util
import selectors
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from withstand import clock
from withstand.errors import MeasureError, UsageError, extra
from withstand.load.child import Child
from withstand.load.fleet import Fleet
from withstand.load.job import Command, Job
from withstand.load.member import Member
from withstand.load.ray.words import Order, Word

_CONNECT_S = 90.0
_DISMISS_S = 15.0
_LISTEN_S = 0.1
_decode = msgspec.json.Decoder(Word).decode


class RayHosts:
    """A cluster's nodes, for as long as the context lasts."""

    def __init__(self, address: str, log: Path, cpus: int) -> None:
        """``address`` as Ray spells it, empty = the cluster that runs here, else a new one with ``cpus``.

        Raises:
            UsageError: Ray is not installed.
            MeasureError: there is no such cluster, or it does not want us.
        """
        if importlib.util.find_spec("ray") is None:
            raise UsageError(f"--fleet ray needs Ray: {extra('ray')}.")
        self._bridge = Child("withstand.load.ray", log, (address, str(cpus)))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._bridge, selectors.EVENT_READ)
        try:
            connected = self._connected()
        except BaseException:
            self.close()
            raise
        self.hosts = connected.hosts or ()
        self.started = connected.started

    def _connected(self) -> Word:
        until_ns = clock.now_ns() + int(_CONNECT_S * 1e9)
        while clock.now_ns() < until_ns:
            for word in self.words(_LISTEN_S):
                if word.refused:
                    raise MeasureError(word.refused)
                if word.hosts == ():
                    raise MeasureError("No node of the Ray cluster offers a core; start one with --num-cpus above 0.")
                if word.hosts:
                    return word
            if self.ended:
                raise MeasureError(self.why())
        raise MeasureError(f"Ray did not come up within {_CONNECT_S:g} s.")

    def muster(self, jobs: Sequence[Job], _log: Path) -> "RayFleet":
        """A worker for each job, dealt out over the nodes."""
        return RayFleet(self, jobs)

    def order(self, order: Order) -> None:
        """Tell the bridge."""
        self._bridge.send(msgspec.json.encode(order))

    def words(self, timeout_s: float) -> list[Word]:
        """What it has said within the time."""
        if self.ended or not self._selector.select(timeout_s):
            return []
        return [_decode(line) for line in self._bridge.hear()]

    @property
    def ended(self) -> bool:
        """Whether the bridge is gone, and the way to the nodes with it."""
        return self._bridge.ended

    def why(self) -> str:
        """How it went."""
        return f"The process that speaks to Ray has ended ({self._bridge.why()})"

    def abandon(self) -> None:
        """It does not obey: end it. Ray ends the actors of whoever is gone."""
        self._bridge.kill()

    def close(self) -> None:
        """Take leave of the cluster."""
        self._bridge.end(_DISMISS_S)
        self._selector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class RayFleet(Fleet):
    """Workers on the nodes of a cluster."""

    lead_ns = 500_000_000

    def __init__(self, hosts: RayHosts, jobs: Sequence[Job]) -> None:
        super().__init__([Member(job) for job in jobs])
        self._hosts = hosts
        self._dismissed = False
        self._hosts.order(Order(muster=tuple(jobs)))

    def wait_ready(self, timeout_s: float) -> None:
        """The spools are brought to the nodes now that they are filled."""
        self._hosts.order(Order(prepare=True))
        super().wait_ready(timeout_s)

    def listen(self, timeout_s: float) -> None:
        """Wait for something to be said, and take it in."""
        for word in self._hosts.words(timeout_s):
            self._take(word)
        if self._hosts.ended:
            self._all_gone(self._hosts.why())

    def _take(self, word: Word) -> None:
        self._dismissed |= word.dismissed
        if word.worker is None:
            return
        member = self.members[word.worker]
        member.place = word.place or member.place
        if word.report:
            member.heard(word.report)
        if word.gone is not None:
            member.gone(word.gone)

    def _all_gone(self, why: str) -> None:
        for member in self.members:
            member.gone(why)

    def tell(self, command: Command) -> None:
        """Give a command to all that live."""
        self._hosts.order(Order(command=command))

    def kill(self) -> None:
        """End those that do not obey."""
        self.close()
        self._all_gone("it did not stop when it was told to")

    def give_up(self, member: Member, why: str) -> None:
        """End one, and do not wait for it any more."""
        self._hosts.order(Order(give_up=member.job.worker))
        member.gone(why)

    def close(self) -> None:
        """Let all go, and see that they have gone."""
        if self._dismissed:
            return
        self._hosts.order(Order(dismiss=True))
        until_ns = clock.now_ns() + int(_DISMISS_S * 1e9)
        while not self._dismissed and not self._hosts.ended:
            self.listen(_LISTEN_S)
            if clock.now_ns() > until_ns:
                self._hosts.abandon()
