"""Our hand on another machine: an actor that keeps one worker there and carries between it and the bridge.

It knows one child process, its spool, its records, its texts and this host's clock; nothing of Ray or the load.
The worker is a process of its own, for a loop that stamps must not share an interpreter with Ray's threads.
"""

import contextlib
import os
import selectors
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

from withstand import __version__, clock
from withstand.errors import WithstandError
from withstand.load.address import locate
from withstand.load.child import Child
from withstand.load.job import Job
from withstand.load.limits import ensure_descriptors, ensure_ports

_HAUL_BYTES_MAX = 8 << 20


class About(NamedTuple):
    """What is to be known of a hand before it is given work."""

    version: str
    niceness: int


class Haul(NamedTuple):
    """What a worker has said and written since the last one."""

    lines: list[bytes]
    records: bytes
    texts: bytes
    """Both in whole lines."""
    gone: str | None
    """How it ended; nothing more will come."""


class _Written:
    """What the worker has written to a file, as far as its lines are whole."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._cut = b""

    def read(self) -> bytes:
        """The lines that have come since the last time, about 8 MiB of them at most."""
        whole, newline, self._cut = (self._cut + self._file.read(_HAUL_BYTES_MAX)).rpartition(b"\n")
        return whole + newline

    def close(self) -> None:
        """Give the descriptor back."""
        self._file.close()


class Hand:
    """One worker's keeper. Calls are carried out one after another, in the order in which they were made."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="withstand-")
        self._spool = self._path("requests.jsonl").open("wb", buffering=0)
        self._records: _Written | None = None
        self._texts: _Written | None = None
        self._child: Child | None = None
        self._selector = selectors.DefaultSelector()
        with contextlib.suppress(PermissionError):  # Ray makes its workers nice, and only root may take that back
            os.setpriority(os.PRIO_PROCESS, 0, 0)

    def _path(self, name: str) -> Path:
        return Path(self._folder.name) / name

    def about(self) -> About:
        """Who we are."""
        return About(__version__, os.getpriority(os.PRIO_PROCESS, 0))

    def now_ns(self) -> int:
        """This host's monotonic clock."""
        return clock.now_ns()

    def feed(self, data: bytes) -> None:
        """Further bytes of the spool."""
        self._spool.write(data)

    def open(self, job: Job, cacert: bytes | None) -> str | None:
        """Start the worker; why not, if this host cannot carry it or does not reach the target."""
        try:
            connections = max(job.cap or 0, job.preconnect) or None
            ensure_descriptors(connections)
            ensure_ports(connections, over_tcp=job.address.unix_path is None)
            located = locate(job.address, job.timeouts.connect_s)
        except WithstandError as e:
            return str(e)
        job = msgspec.structs.replace(
            job,
            located=located,
            spool=str(self._path("requests.jsonl")),
            records=str(self._path("records.jsonl")),
            texts=str(self._path("texts.jsonl")) if job.texts else None,
            cacert=self._stored(cacert),
        )
        self._child = Child("withstand.load.worker", self._path("worker.log"))
        self._child.send(msgspec.json.encode(job))
        self._selector.register(self._child, selectors.EVENT_READ)
        return None

    def _stored(self, cacert: bytes | None) -> str | None:
        if cacert is None:
            return None
        self._path("ca.pem").write_bytes(cacert)
        return str(self._path("ca.pem"))

    def tell(self, line: bytes) -> None:
        """A command for the worker."""
        assert self._child is not None
        self._child.send(line)

    def poll(self, wait_s: float) -> Haul:
        """What there is, after at most ``wait_s``."""
        child = self._child
        assert child is not None
        lines = child.hear() if not child.ended and self._selector.select(wait_s) else []
        if lines and self._records is None:
            self._unname_files()
        records = self._records.read() if self._records else b""
        texts = self._texts.read() if self._texts else b""
        return Haul(lines, records, texts, child.why() if child.ended and not (records or texts) else None)

    def _unname_files(self) -> None:
        """The worker has opened all that it needs: from now on nothing can stay behind on this host's disk."""
        self._records = self._written("records.jsonl")
        self._texts = self._written("texts.jsonl")
        self._folder.cleanup()

    def _written(self, name: str) -> _Written | None:
        """None = it is not wanted, or it could not be made, and the worker has said so."""
        try:
            return _Written(self._path(name))
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """End the worker; leave nothing."""
        if self._child:
            self._child.end()
        for written in (self._records, self._texts):
            if written:
                written.close()
        self._spool.close()
        self._selector.close()
        self._folder.cleanup()
