"""What passes between the run and its bridge to Ray: orders one way, words the other. JSON lines over pipes."""

import msgspec

from withstand.load.job import Command, Job, Report
from withstand.record import Place


class Order(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """To the bridge."""

    muster: tuple[Job, ...] = ()
    """Call up a worker for each."""
    prepare: bool = False
    """The spools hold what there is before the start: bring it to the workers, and have them read ahead."""
    command: Command | None = None
    """For all workers; a start is an instant of the run's own clock."""
    give_up: int | None = None
    """This worker is not waited for any more: end it."""
    dismiss: bool = False
    """The stage is over."""


class Word(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """From the bridge."""

    worker: int | None = None
    """Whom the next three are about."""
    report: Report | None = None
    place: Place | None = None
    gone: str | None = None
    """How it ended."""
    hosts: tuple[str, ...] | None = None
    """Connected: the nodes that can take a worker."""
    started: bool = False
    """The cluster is new and ends with the run; else we have joined one."""
    refused: str | None = None
    """Not connected: why."""
    dismissed: bool = False
    """No worker is left."""
