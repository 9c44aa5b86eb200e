"""The bridge between a run and a Ray cluster: orders come in by standard input, words go out."""

from collections.abc import Callable

import msgspec

from withstand.load.lines import Lines
from withstand.load.poller import READ, Poller
from withstand.load.ray.cluster import Cluster
from withstand.load.ray.crew import Crew
from withstand.load.ray.words import Order, Word

_STDIN = 0
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
