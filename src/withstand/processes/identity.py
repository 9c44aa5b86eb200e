"""Which process is which, so that only our own are ever ended: by number and by the instant of its start.

A session that we began is ours with all that is in it: its number is not given away again while one of them lives. And
what has our mark in its environment is ours, whoever has started it.
Needs Linux's ``/proc``; elsewhere a process is known by its number and by what ``ps`` says of its start.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from withstand import clock

_PROC = Path("/proc")
_LINUX = sys.platform == "linux"
_LOOK_S = 0.02
_LOOKS = 3


class Identity(Struct, frozen=True):
    """A process. ``started`` is the kernel's own word for the instant, and only ever compared."""

    pid: int
    started: str

    @property
    def is_alive(self) -> bool:
        """Whether it still runs: not merely another one with its number, nor one that only waits to be reaped."""
        found = _look(self.pid)
        return found is not None and found.identity == self and found.state not in "ZX"

    @property
    def is_held_up(self) -> bool:
        """Whether it was stopped, as by SIGSTOP or a debugger."""
        found = _look(self.pid)
        return found is not None and found.identity == self and found.state in "Tt"

    @property
    def memory_bytes(self) -> int:
        """Resident, of it and of its session; 0 = not known."""
        return sum(_resident(one.pid) for one in in_session(self))


class _Seen(Struct, frozen=True):
    identity: Identity
    state: str
    parent: int
    session: int


def identity_of(pid: int) -> Identity | None:
    """None = there is no such process."""
    found = _look(pid)
    return found.identity if found else None


def boot() -> str:
    """Which start of the machine this is: numbers and instants mean nothing after another. Empty = it does not tell."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def pid_space() -> str:
    """In which numbering of processes we are: another container's numbers mean nothing here. Empty = it is not told."""
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def is_pid_spaces_other(pid: int) -> bool:
    """Whether it is known to be a container's, which is nobody's child here; it has numbers there and here."""
    return len(_status(pid, "NSpid")) > 1


def run_by(user: int) -> list[int]:
    """The numbers of all processes that are this user's, or may act as him, which only Linux tells."""
    return [seen.identity.pid for seen in _all() if str(user) in _status(seen.identity.pid, "Uid")]


def has_come_of(pid: int, keeper: int) -> bool:
    """Whether it is that process or its child's child, however far; orphans are children of who keeps them."""
    return any(keeper in _line_of(pid) for _ in range(_LOOKS))  # one in between may end while we look


def _line_of(pid: int) -> list[int]:
    """It, its parent, and so on."""
    line: list[int] = []
    while pid not in line and (seen := _look(pid)):
        line.append(pid)
        pid = seen.parent
    return line


def run_as(*arguments: str) -> list[Identity]:
    """This user's whose command line is a program and these, which only Linux tells."""
    wanted, user = list(map(os.fsencode, arguments)), str(os.geteuid())
    found = [seen.identity for seen in _all() if _argv(seen.identity.pid)[1:] == wanted]
    return [one for one in found if user in _status(one.pid, "Uid")]


def runs(pid: int, *arguments: str) -> bool:
    """Whether its command line is a program, these, and perhaps more, which only Linux tells."""
    return _argv(pid)[1 : len(arguments) + 1] == list(map(os.fsencode, arguments))


def children_of(pid: int) -> list[Identity]:
    """Those that it has started, or that have become its own."""
    return [seen.identity for seen in _all() if seen.parent == pid and seen.state not in "ZX"]


def reap(besides: Collection[int]) -> None:
    """Take leave of our children that have ended, but for these, whom somebody else waits for. Linux."""
    for seen in _all():
        if seen.parent == os.getpid() and seen.state == "Z" and seen.identity.pid not in besides:
            with suppress(ChildProcessError):
                os.waitpid(seen.identity.pid, os.WNOHANG)


def in_session(leader: Identity) -> list[Identity]:
    """All that live in the session that this process leads or has led; none where its number is another's by now."""
    now = _look(leader.pid)
    if now is not None and now.identity != leader:
        return []
    return [
        seen.identity
        for seen in _all()
        if seen.session == leader.pid and seen.state not in "ZX" and not _is_before(seen.identity, leader)
    ]


def began_s(one: Identity) -> float | None:
    """When, by the wall clock as it goes now; None = not known, as everywhere but on Linux."""
    if not (_LINUX and one.started.isdecimal()):
        return None
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - int(one.started) / os.sysconf("SC_CLK_TCK")
    return clock.wall_s() - age_s


def marked(name: str, value: str) -> list[Identity]:
    """All that have begun with this in their environment, which only Linux tells."""
    return [seen.identity for seen in _all() if seen.state not in "ZX" and is_marked(seen.identity.pid, name, value)]


def is_marked(pid: int, name: str, value: str) -> bool:
    """Whether it is one of those."""
    return f"{name}={value}".encode() in _environment(pid)


def tell_to_end(one: Identity) -> None:
    """Politely, and without waiting for it."""
    if one.is_alive:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(one.pid, signal.SIGTERM)


def end(identities: Iterable[Identity], within_s: float) -> list[Identity]:
    """End those that still live: politely first, then not. What could not be ended is returned."""
    left = list(identities)
    for number, wait_s in ((signal.SIGTERM, within_s), (signal.SIGKILL, 5.0)):
        told = [one for one in left if one.is_alive and _is_told(one, number)]
        give_up_ns = clock.now_ns() + int(wait_s * 1e9)
        while any(one.is_alive for one in told) and clock.now_ns() < give_up_ns:
            clock.sleep_s(_LOOK_S)
        if not (left := [one for one in left if one.is_alive]):
            break
    return left


def _is_told(one: Identity, number: int) -> bool:
    """Whether the signal reached it: another user's cannot be told, and is not waited for."""
    try:
        os.kill(one.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _argv(pid: int) -> list[bytes]:
    return _strings(pid, "cmdline")[:-1]


def _environment(pid: int) -> list[bytes]:
    return _strings(pid, "environ")


def _strings(pid: int, what: str) -> list[bytes]:
    try:
        return (_PROC / str(pid) / what).read_bytes().split(b"\0")
    except OSError:  # another user's, or gone
        return []


def _status(pid: int, field: str) -> list[str]:
    """Also another user's may be read."""
    try:
        lines = (_PROC / str(pid) / "status").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    return next((line.split()[1:] for line in lines if line.startswith(f"{field}:")), [])


def _resident(pid: int) -> int:
    try:
        pages = (_PROC / str(pid) / "statm").read_text("ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _is_before(one: Identity, other: Identity) -> bool:
    return one.started.isdecimal() and other.started.isdecimal() and int(one.started) < int(other.started)


def _all() -> Iterator[_Seen]:
    if _LINUX:
        for folder in _PROC.glob("[0-9]*"):
            if seen := _from_proc(folder):
                yield seen


def _look(pid: int) -> _Seen | None:
    return _from_proc(_PROC / str(pid)) if _LINUX else _from_ps(pid)


def _from_proc(folder: Path) -> _Seen | None:
    try:
        stat = (folder / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # a name may hold blanks and brackets
    return _Seen(Identity(int(folder.name), fields[19]), fields[0], int(fields[1]), int(fields[3]))


def _from_ps(pid: int) -> _Seen | None:
    told = subprocess.run(  # noqa: S603  the system's own
        ["/bin/ps", "-o", "state=,ppid=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.split(None, 2)
    return _Seen(Identity(pid, told[2].strip()), told[0][:1], int(told[1]), 0) if len(told) == 3 else None
