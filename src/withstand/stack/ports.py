"""A port of this machine for a service of ours, and who has it now."""

import errno
import random
import socket
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from withstand.errors import EngineError

HOST = "127.0.0.1"
_LISTENS = "0A"
_LOOK_S = 0.5
# A free port is listened on a moment later. The kernel gives those of its own range to any connection meanwhile.
_OURS = range(20_000, 30_000)
_KERNELS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES = 100


def free_port(wanted: int | None = None, besides: Collection[int] = ()) -> int:
    """``wanted``, or any that nobody has, that is none of ``besides``, and that no connection will be given.

    Raises:
        EngineError: somebody listens on it, or it is not ours to take.
    """
    if wanted is None and not _kernels_own():
        for port in random.SystemRandom().sample(_OURS, _TRIES):
            with suppress(EngineError):
                if port not in besides:
                    return _had(port)
    return _had(wanted or 0)


def _had(wanted: int) -> int:
    with socket.socket() as probe:
        # Connections of an earlier service that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted))
        except OSError as e:
            why = "is in use" if e.errno == errno.EADDRINUSE else f"cannot be had ({e.strerror})"
            raise EngineError(
                f"Port {wanted} of {HOST} {why}; choose another one, or none to get a free one."
            ) from None
        return int(probe.getsockname()[1])


def _kernels_own() -> bool:
    """Whether connections may be given what we would take."""
    try:
        low, high = map(int, _KERNELS.read_text("ascii").split())
    except (OSError, ValueError):
        return True
    return low < _OURS.stop and high >= _OURS.start


def listener_on(port: int) -> str | None:
    """Who listens there: ``nginx (pid 123)``, or as much of it as may be known. None = nobody."""
    inodes = _listening_inodes(port)
    for descriptor in Path("/proc").glob("[0-9]*/fd/*") if inodes else ():
        try:
            target = str(descriptor.readlink())
        except OSError:  # not ours to look at, or gone
            continue
        if target in inodes:
            pid = descriptor.parts[2]
            return f"{Path(f'/proc/{pid}/comm').read_text('utf-8', 'replace').strip()} (pid {pid})"
    return "a process that this user may not see" if inodes or _answers(port) else None


def _listening_inodes(port: int) -> set[str]:
    """As descriptors are called that hold it."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{fields[9]}]")
    return found


def _answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=_LOOK_S).close()
    except OSError:
        return False
    return True
