"""What an earlier gateway has left running: known by process id *and* start time, never by a name.

While an engine runs there is a record of it: of the gateway, of the keeper, and of a token in the environment of all
that came of the command. A killed gateway's keeper ends its engine by itself; the next gateway waits for that, and ends
what is left where the keeper was killed too. Without ``/proc`` there are no records, and the keeper is alone with it.
"""

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from withstand.files import discard

TOKEN = "WITHSTAND_ENGINE_TOKEN"  # noqa: S105  a variable's name; the value opens nothing
_LOOK_S = 0.05
_PROC = Path("/proc")
_BOOT = _PROC / "sys/kernel/random/boot_id"


class Alive(Struct, frozen=True):
    """One process, which no other can be taken for; ``start`` is in the kernel's ticks since the boot."""

    pid: int
    start: int


class Record(Struct, frozen=True):
    """One engine that is running."""

    boot: str
    gateway: Alive
    keeper: Alive
    token: str
    stop_s: float


def new_token() -> str:
    """One that no other engine has."""
    return secrets.token_hex(16)


def alive(pid: int) -> Alive | None:
    """That process as it is now; None where there is none, or nobody tells."""
    try:
        state, _, _, *fields = (_PROC / f"{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in {"Z", "X"} else Alive(pid, int(fields[15]))


def remember(folder: Path, keeper_pid: int, token: str, stop_s: float) -> Path | None:
    """Write a record; None where the system tells too little for one, or takes none."""
    gateway, keeper, boot = alive(os.getpid()), alive(keeper_pid), _boot()
    if gateway is None or keeper is None or boot is None:
        return None
    path = folder / f"{token}.json"
    with contextlib.suppress(OSError):
        path.write_bytes(msgspec.json.encode(Record(boot, gateway, keeper, token, stop_s)))
        return path
    return None


async def end_orphans(folder: Path) -> None:
    """End all that gateways which are no more have left, as their records in the folder say."""
    for path in _records(folder):
        try:
            record = msgspec.json.decode(path.read_bytes(), type=Record)
        except (OSError, ValueError):  # of a gateway that was killed as it wrote
            discard(path)
            continue
        if record.boot == _boot():
            if alive(record.gateway.pid) == record.gateway:
                continue
            await _end(record)
        discard(path)


def _records(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


async def _end(record: Record) -> None:
    _signal(record.keeper, signal.SIGTERM)
    looks = int(record.stop_s / _LOOK_S) + 20
    while alive(record.keeper.pid) == record.keeper and looks > 0:
        looks -= 1
        await asyncio.sleep(_LOOK_S)
    _signal(record.keeper, signal.SIGKILL)
    while left := list(_with(record.token)):
        for each in left:
            _signal(each, signal.SIGKILL)
        await asyncio.sleep(_LOOK_S)


def _signal(process: Alive, number: signal.Signals) -> None:
    """By a descriptor, so that the number cannot have become another's between the look and the signal."""
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(process.pid)
        try:
            if alive(process.pid) == process:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def _with(token: str) -> Iterator[Alive]:
    """All of our processes that have it in their environment."""
    wanted = f"{TOKEN}={token}".encode("ascii")
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            found = wanted in (folder / "environ").read_bytes().split(b"\0") and alive(int(folder.name))
            if found:
                yield found


def _boot() -> str | None:
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return None
