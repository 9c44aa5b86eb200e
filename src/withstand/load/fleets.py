"""Where a stage's workers come from: this machine, or the nodes of a Ray cluster. What ``--fleet`` means."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from withstand.load.fleet import LocalFleet
from withstand.load.ray.fleet import RayHosts
from withstand.load.stage import Muster

_LOCAL = "local"
_RAY, _CLIENT = "ray", "ray://"


class Hosts(msgspec.Struct, frozen=True):
    """Machines that can take workers, and how to call workers up on them."""

    muster: Muster
    names: tuple[str, ...] = ()
    """Empty = this machine alone."""
    started: bool = False
    """The cluster was started for this run."""


@contextlib.contextmanager
def hosts_of(fleet: str, log: Path, cpus: int) -> Iterator[Hosts]:
    """``local``, ``ray``, ``ray://HOST:PORT`` or ``ray:ADDRESS``; ``cpus`` is for a cluster that is started for us.

    Raises:
        UsageError: Ray is not installed.
        MeasureError: there is no such cluster, or it does not want us.
    """
    if not is_ray(fleet):
        yield Hosts(LocalFleet)
        return
    address = fleet if fleet.startswith(_CLIENT) else fleet.removeprefix(_RAY).removeprefix(":")
    with RayHosts(address, log, cpus) as ray:
        yield Hosts(ray.muster, ray.hosts, ray.started)


def is_ray(fleet: str) -> bool:
    """Whether the workers run on a Ray cluster, and not on this machine alone."""
    return fleet != _LOCAL
