"""What an earlier gateway has left running: known by process id *and* start time, never by a name.

While an engine runs there is a record of it: of the gateway, of the keeper, and of a token in the environment of all
that came of the command. A killed gateway's keeper ends its engine by itself; the next gateway waits for that, and ends
what is left where the keeper was killed too. Without ``/proc`` there are no records, and the keeper is alone with it.
"""

import contextlib
import os
import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from withstand.files import discard
from withstand.gateway.aside import aside
from withstand.processes import KEEPER_S
from withstand.processes.identity import Identity, boot, end, identity_of, marked

TOKEN = "WITHSTAND_ENGINE_TOKEN"  # noqa: S105  a variable's name; the value opens nothing
_TRIES = 5


class Record(Struct, frozen=True):
    """One engine that is running."""

    boot: str
    gateway: Identity
    keeper: Identity
    token: str
    stop_s: float


def new_token() -> str:
    """One that no other engine has."""
    return secrets.token_hex(16)


def remember(folder: Path, keeper_pid: int, token: str, stop_s: float) -> Path | None:
    """Write a record; None where the system tells too little for one, or takes none."""
    gateway, keeper, start = identity_of(os.getpid()), identity_of(keeper_pid), boot()
    if gateway is None or keeper is None or not start:
        return None
    path = folder / f"{token}.json"
    with contextlib.suppress(OSError):
        path.write_bytes(msgspec.json.encode(Record(start, gateway, keeper, token, stop_s)))
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
        if record.boot == boot():
            if record.gateway.is_alive:
                continue
            await aside(_end, record)  # it may take as long as the engine does
        discard(path)


def _records(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def _end(record: Record) -> None:
    end([record.keeper], record.stop_s + KEEPER_S)
    for _ in range(_TRIES):  # what is being ended may still start something
        left = marked(TOKEN, record.token)
        end(left, 0.0)
        if not left:
            break
