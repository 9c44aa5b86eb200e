"""A port of this machine for a service of ours, and who has it now."""

import errno
import random
import socket
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from pwd import getpwuid

from withstand.errors import EngineError
from withstand.processes.identity import identity_of, is_pid_spaces_other, run_by

HOST = "127.0.0.1"
_LISTENS = "0A"
_LOOK_S = 0.5
# A free port is listened on a moment later. The kernel gives those of its own range to any connection meanwhile.
_OURS = range(20_000, 30_000)
_KERNELS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TRIES = 100
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
NOBODY = "nobody"
_CONTAINERS = frozenset({"docker-proxy", "rootlesskit", "rootlessport"})
"""Who listens for a container, whatever has started that."""


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
            owner = f" by {name}" if (name := listener_on(wanted)) else ""
            why = f"is in use{owner}" if e.errno == errno.EADDRINUSE else f"cannot be had ({e.strerror})"
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
    sockets = {name for _, _, name, _ in _listening(port)}
    if pid := next((pid for _, pid in _holders(sockets)), None):
        return _called(pid)
    return "a process that this user may not see" if sockets or _answers(port) else None


def stranger_on(port: int, is_own: Callable[[int], bool]) -> str | None:
    """Who answers there though his number is not an own one; ``NOBODY``, if he that did is gone.

    None = one of our own, or nobody knows, as of a container.
    """
    if not (users := _answering(port)):
        return None if _answers(port) else NOBODY
    of_socket: dict[str, set[int]] = {name: set() for name in users}
    for name, pid in _holders(users):
        of_socket[name].add(pid)
    for name, pids in of_socket.items():
        perhaps = pids or run_by(users[name])
        if not any(is_own(pid) or _is_containers(pid) for pid in perhaps):
            if pids:
                return next((_called(pid) for pid in sorted(pids) if identity_of(pid)), NOBODY)
            return _of_user(users[name]) if perhaps else None  # we may not even see that he has any
    return None if _answering(port).keys() & users.keys() else NOBODY


def _of_user(user: int) -> str:
    """Whose processes this user may not look into."""
    try:
        return f"a process of the user {getpwuid(user).pw_name}"
    except KeyError:
        return f"a process of the user {user}"


def _is_containers(pid: int) -> bool:
    return is_pid_spaces_other(pid) or _command(pid) in _CONTAINERS


def _called(pid: int) -> str:
    return f"{_command(pid) or 'a process'} (pid {pid})"


def _command(pid: int) -> str:
    try:
        name = Path(f"/proc/{pid}/comm").read_text("utf-8", "replace")
    except OSError:  # it is gone
        return ""
    return "".join(c for c in name if c.isprintable())


def _holders(sockets: Collection[str]) -> Iterator[tuple[str, int]]:
    """Each of them with the number of a process that has it, as far as this user may know; a pair may come twice."""
    for process in Path("/proc").glob("[0-9]*") if sockets else ():
        try:
            descriptors = list((process / "fd").iterdir())
        except OSError:  # not ours to look at, or gone
            continue
        for descriptor in descriptors:
            with suppress(OSError):  # closed since
                if (target := str(descriptor.readlink())) in sockets:
                    yield target, int(process.name)


def _answering(port: int) -> dict[str, int]:
    """By name whose they are: of sockets on one port the kernel takes those of the nearest address.

    It takes the first to have come of those at all addresses of IPv6 and of IPv4 as IPv6 writes it: they are all told.
    """
    ours = f"{int.from_bytes(socket.inet_aton(HOST), sys.byteorder):08X}"
    as_v6, none = f"{0:016X}{int.from_bytes(bytes([0, 0, 255, 255]), sys.byteorder):08X}", "0" * 8
    v4, v6 = _TABLES
    near = ({(v4, ours)}, {(v6, as_v6 + ours)}, {(v4, none)}, {(v6, none * 4), (v6, as_v6 + none)})
    found = _listening(port)
    at_each = ({name: user for *there, name, user in found if tuple(there) in at} for at in near)
    return next((users for users in at_each if users), {})


def _listening(port: int) -> list[tuple[str, str, str, int]]:
    """Table, address, the name that descriptors have which hold it, and its user, of each socket that listens there."""
    found = []
    for table in _TABLES:
        try:
            lines = Path(table).read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            address, _, number = fields[1].rpartition(":")
            if fields[3] == _LISTENS and int(number, 16) == port:
                found.append((table, address, f"socket:[{fields[9]}]", int(fields[7])))
    return found


def _answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=_LOOK_S).close()
    except OSError:
        return False
    return True
