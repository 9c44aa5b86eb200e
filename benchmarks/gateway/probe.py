"""What one probe is: something that is done to a gateway, the figures that come of it, and what must hold of ours.

A figure is a number by its name; nan = it did not come to that. Rounds are made one by their medians. Pure, but for
``Bench``, which carries what probes need.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.gateway.gateways import DIRECT, OURS, Running, Wanted, running
from benchmarks.gateway.native import Engine, Load, Seen, engines, started_client
from benchmarks.load.claims import Claim, number
from benchmarks.load.instrument import Cores
from benchmarks.load.meter import Meter

from withstand.stack.ports import free_port

Figures = Mapping[str, float]
Table = Mapping[str, Figures]
"""For each gateway."""
Judge = Callable[[Table], Sequence[Claim]]


class Bench(NamedTuple):
    """What a probe gets."""

    cores: Cores
    folder: Path
    seconds: float
    soak_s: float
    scale: float
    """Of the numbers of requests where they are many; 1 = as the issue has them."""

    @contextmanager
    def gateway(self, name: str, urls: Sequence[str], cores: Sequence[int] = (), **wanted: object) -> Iterator[Running]:
        """It alone on its core, or on ``cores``."""
        told = Wanted(urls, self.folder, free_port())._replace(**wanted)
        with running(name, told, cores or [self.cores.client]) as gateway:
            yield gateway

    @contextmanager
    def before(self, name: str, count: int = 1, **wanted: object) -> Iterator[tuple[Running, list[Engine]]]:
        """A gateway and its engines."""
        with engines(self.cores.server, count) as made, self.gateway(name, [e.url for e in made], **wanted) as gateway:
            yield gateway, made

    def load(self, gateway: Running, load: Load) -> tuple[Seen, float]:
        """What the client saw, and the share of the gateway's core that others took meanwhile."""
        client = started_client(load, self.cores.server, gateway.port, gateway.header, gateway.pids(self.cores.client))
        if gateway.pid is None:
            return client.seen(), math.nan
        with Meter(gateway.pid, self.cores.client) as meter:
            seen = client.seen()
        return seen, meter.between(seen.begin_ns, seen.end_ns).foreign_share


class Probe(NamedTuple):
    """Tried with each gateway; ``judge`` sees all of them."""

    title: str
    measure: Callable[[Bench, str], Figures]
    judge: Judge
    gateways: tuple[str, ...] = ()
    """Those that it is for; none = all."""


def middle(rounds: Sequence[Figures]) -> Figures:
    """The medians of what the rounds found."""
    names = {name: None for figures in rounds for name in figures}
    found = {name: [f[name] for f in rounds if not math.isnan(f.get(name, math.nan))] for name in names}
    return {name: statistics.median(values) if values else math.nan for name, values in found.items()}


def figure(table: Table, name: str, gateway: str = OURS) -> float:
    """nan where that gateway was not measured."""
    return table.get(gateway, {}).get(name, math.nan)


def ratio(table: Table, name: str, to: str, limit: float | None = None, *, at_least: bool = False) -> Claim:
    """Ours to that gateway's, of the same round."""
    theirs = figure(table, name, to)
    got = figure(table, name) / theirs if theirs else math.nan
    return Claim(f"{name}, ratio to {to}", got, "", limit, at_least)


def claim(table: Table, name: str, unit: str, limit: float | None = None, *, at_least: bool = False) -> Claim:
    """A figure of ours."""
    return Claim(name, figure(table, name), unit, limit, at_least)


def above_direct(table: Table, name: str, gateway: str = OURS) -> float:
    """What the gateway adds to the figure."""
    return figure(table, name, gateway) - figure(table, name, DIRECT)


def side_by_side(table: Table) -> str:
    """Markdown: a row a gateway."""
    names = list({name: None for figures in table.values() for name in figures})
    head = ["| gateway | " + " | ".join(names) + " |", "| --- " * (len(names) + 1) + "|"]
    rows = [
        f"| {gateway} | " + " | ".join(_text(figures.get(n)) for n in names) + " |"
        for gateway, figures in table.items()
    ]
    return "\n".join([*head, *rows])


def _text(value: float | None) -> str:
    if value is None:
        return ""
    return "-" if math.isnan(value) else number(value)
