"""What passes between the fleet and one worker: a job and a few commands down, reports up. JSON lines over pipes."""

from pathlib import Path

import msgspec

from withstand.load.address import Address, Located
from withstand.record import Health
from withstand.spec import Timeouts
from withstand.wire import Ask


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One worker's share of one stage."""

    worker: int
    stage: int
    epoch_ns: int
    """The run's epoch, monotonic: records count from it."""
    spool: str
    records: str
    texts: str | None = None
    """Where the texts of good answers go, for their tokens to be counted; None = nobody will."""
    text_share: float = 0.0
    """Of how many of them."""
    dialect: str
    ask: Ask
    address: Address
    located: Located
    timeouts: Timeouts
    cacert: str | None = None
    insecure: bool = False
    endpoint: str
    """The path as it stands in the request line."""
    headers: dict[str, str] = {}
    """With the API key in it: it is handed over by a pipe and never stands in a command line or on a disk."""
    secrets: tuple[str, ...] = ()
    """What must not be written down, should the server quote it."""
    preconnect: int = 0
    """Connections to open before the start."""
    cap: int | None = None
    closed: bool = False
    duration_ns: int | None = None
    drain_ns: int = 0

    @property
    def spool_path(self) -> Path:
        """Where the requests come from."""
        return Path(self.spool)

    @property
    def records_path(self) -> Path:
        """Where the records go."""
        return Path(self.records)


class Command(msgspec.Struct, frozen=True, omit_defaults=True):
    """To a worker."""

    start_ns: int | None = None
    """Begin the stage at this monotonic instant."""
    drain: bool = False
    """Send nothing more and wait for what runs."""
    stop: bool = False
    """End at once."""


class Report(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """From a worker: ready, then progress, then its health or what went wrong."""

    ready: bool = False
    taken: int = 0
    """First turns taken from the spool: how far ahead the writer is."""
    sent: int = 0
    done: int = 0
    failed: int = 0
    in_flight: int = 0
    output_tokens: int = 0
    unheard_ns: int = 0
    """For how long requests have failed without a byte from the server, and none has had one."""
    silent_ns: int = 0
    """In a sum of reports: for how long the most silent worker has said nothing."""
    interrupts: int = 0
    """In a sum of reports: how often the user wanted to stop."""
    health: Health | None = None
    error: str | None = None
    storage: bool = False
    """The error is that records cannot be written: no further stage makes sense."""
