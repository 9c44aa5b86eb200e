"""The access log: one JSON object a line, handed over many at a time."""

import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from withstand import clock
from withstand.errors import UsageError
from withstand.gateway.counts import Ending, Outcome
from withstand.gateway.money.bill import Charge
from withstand.gateway.scribe import Scribe

_AT_ONCE_BYTES = 128 << 10
"""Handed over without waiting for more."""


class Line(Struct, frozen=True, gc=False):
    """Its fields are the log's."""

    at: str
    request_id: str
    route: str
    key: str | None
    model: str | None
    engine: str | None
    status: int
    outcome: Outcome
    error: str | None
    """The code, or else the type, of what the gateway has said in an engine's place."""
    limit: str | None
    """Of a key, which has turned it away."""
    reason: str | None
    """What it said to the client."""
    attempts: int
    """Engines that were asked."""
    hop_ms: float
    queue_ms: float | None
    first_byte_ms: float | None
    total_ms: float
    prompt_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """None: nothing is counted, or the model has no price."""
    estimated: bool | None
    """The engine did not say all of what was charged."""


_written = msgspec.json.Encoder().encode_lines
Noted = tuple[float, Ending, Charge | None]
"""When it ended by the wall clock, how, and what it has cost."""


class Journal:
    """``path`` None = nobody wants to know; ``-`` = stdout."""

    def __init__(self, path: str | None) -> None:
        self._scribe = _scribe(path)
        self._texts: list[bytes] = []
        """Of many lines each."""
        self._texts_bytes = 0
        self._second = 0
        self._at = ""
        """That second, as it is written."""

    def add(self, noted: Iterable[Noted]) -> None:
        """More lines."""
        if self._scribe is not None:
            text = _written([line_of(ending, charge, self._then(ended_s)) for ended_s, ending, charge in noted])
            self._texts.append(text)
            self._texts_bytes += len(text)
            if self._texts_bytes >= _AT_ONCE_BYTES:
                self.flush()

    def _then(self, ended_s: float) -> str:
        """Put into words once a second."""
        second = int(ended_s)
        if second != self._second:
            self._second, self._at = second, clock.utc_iso(second * 1_000_000_000)
        return self._at

    def flush(self) -> None:
        """Hand over what there is."""
        if self._texts and self._scribe is not None:
            self._scribe.write(b"".join(self._texts))
            self._texts.clear()
            self._texts_bytes = 0

    def close(self) -> None:
        """No more lines; those that there are will be written."""
        self.flush()
        if self._scribe is not None:
            self._scribe.close()

    def join(self, patience_s: float) -> None:
        """Closed, wait until they are, but no longer."""
        if self._scribe is not None:
            self._scribe.join(patience_s)


def line_of(ending: Ending, charge: Charge | None, at: str) -> Line:
    """Times in ms, costs in USD."""
    said = ending.refusal
    nusd = None if charge is None else charge.nusd
    return Line(
        at,
        ending.request_id,
        ending.route,
        ending.key,
        ending.model,
        ending.engine,
        ending.status,
        ending.outcome,
        None if said is None else said.code or said.kind,
        said.limit if said is not None else None,
        None if said is None else said.message,
        ending.attempts,
        ending.hop_ns // 1000 / 1000,
        None if ending.queue_ns is None else ending.queue_ns // 1000 / 1000,
        None if ending.first_byte_ns is None else ending.first_byte_ns // 1000 / 1000,
        ending.total_ns // 1000 / 1000,
        ending.prompt_tokens,
        ending.cached_tokens,
        ending.output_tokens,
        None if nusd is None else nusd / 1e9,
        None if charge is None else charge.estimated,
    )


def _scribe(path: str | None) -> Scribe | None:
    if path is None:
        return None
    if path == "-":
        return Scribe(sys.stdout.fileno(), keeps_open=True)
    try:
        descriptor = os.open(Path(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o640)
    except OSError as e:
        folder = Path(path).parent
        why = e.strerror if folder.is_dir() else f"there is no folder {folder}"
        if e.errno == errno.ENXIO:
            why = "nobody reads that pipe"
        raise UsageError(f"The log {path} cannot be written: {why}. Choose another in [log].") from None
    os.set_blocking(descriptor, True)
    return Scribe(descriptor)
