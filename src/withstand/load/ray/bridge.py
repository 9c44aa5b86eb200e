"""The bridge between a run and a Ray cluster: a process of its own.

``python -m withstand.load.ray.bridge ADDRESS CPUS`` reads orders from its standard input and writes words to its
standard output. Whatever Ray prints goes to standard error, whatever brings Ray down brings down this process only,
and when standard input ends, the run is over or dead: everything is let go.
"""

import os
import signal
import sys
from collections.abc import Callable

import msgspec

from withstand.errors import MeasureError
from withstand.load.lines import Lines
from withstand.load.poller import READ, Poller
from withstand.load.ray.cluster import Cluster
from withstand.load.ray.crew import Crew
from withstand.load.ray.words import Order, Word

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_TURN_S = 0.05
_decode = msgspec.json.Decoder(Order).decode


class Bridge:
    """Takes orders, and turns the crew's wheel in between."""

    def __init__(self, cluster: Cluster, say: Callable[[Word], None]) -> None:
        self._cluster = cluster
        self._say = say
        self._crew: Crew | None = None
        self._orders = Lines(_STDIN)
        self._poller = Poller()
        self._poller.register(_STDIN, READ)

    def serve(self) -> None:
        """Until nobody gives orders any more."""
        try:
            while not self._orders.ended:
                if self._poller.wait(0.0 if self._crew else -1):
                    for line in self._orders.read():
                        self._obey(_decode(line))
                if self._crew:
                    self._crew.turn(_TURN_S)
        finally:
            if self._crew:
                self._crew.dismiss()

    def _obey(self, order: Order) -> None:
        if order.muster:
            self._crew = Crew(self._cluster, order.muster, self._say)
        if self._crew and order.prepare:
            self._crew.prepare()
        if self._crew and order.command:
            self._crew.tell(order.command)
        if self._crew and order.give_up is not None:
            self._crew.give_up(order.give_up)
        if order.dismiss:
            if self._crew:
                self._crew.dismiss()
            self._crew = None
            self._say(Word(dismissed=True))


def _own_stdout() -> Callable[[Word], None]:
    """Words go where standard output went; the name itself now means standard error, for Ray prints to it."""
    descriptor = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)

    def say(word: Word) -> None:
        data = memoryview(msgspec.json.encode(word) + b"\n")
        while data:
            data = data[os.write(descriptor, data) :]

    return say


def main(address: str, cpus: int) -> None:
    """Connect, say so, serve, leave."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    say = _own_stdout()
    try:
        cluster = Cluster(address, cpus)
    except MeasureError as e:
        say(Word(refused=str(e)))
        return
    try:
        say(Word(hosts=tuple(node.host for node in cluster.nodes()), started=cluster.started))
        Bridge(cluster, say).serve()
    except BrokenPipeError:
        return
    finally:
        cluster.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
