"""The keeper of somebody's server: starts a command, and ends all that came of it, when told to or when we die.

``python -I -S keeper.py [--cpus=0,1] [--memory-bytes=N] STOP_S COMMAND …``. A program of ours heeds ``stack.lifeline``;
a user's command does not, and what it has started may live on without it. So the keeper outlives us for a moment. On
Linux orphans become its children, and the kernel ends the command should the keeper itself be killed. It imports the
standard library alone, so that it starts quickly and whatever the command's environment says; it reads no clock, but
counts its looks.
"""

import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType

_STDIN = 0
_LOOK_S = 0.05
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_NOT_FOUND = 127
_LINUX = sys.platform == "linux"
_STACKS = b"\0-P\0-m\0withstand.stack.supervisor\0"
"""What has brought up a stack has not become it: that stays until it is taken down."""


class _Told:
    """Whether somebody wants it to end."""

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._signalled = False
        signal.signal(signal.SIGTERM, self._hear)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        self._signalled = True

    def to_end(self) -> bool:
        """After a look of some length: by a signal, by the end of stdin, or by our parent's."""
        readable, _, _ = select.select([_STDIN], [], [], _LOOK_S)
        closed = bool(readable) and not os.read(_STDIN, 4096)
        return closed or self._signalled or os.getppid() != self._parent


def main() -> None:
    """Keep it."""
    stop_s, *argv = _confined(sys.argv[1:])
    told = _Told()
    if _LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_as_a_child)  # noqa: S603, PLW1509  the user's own; we have one thread
    except OSError as e:
        sys.stderr.write(f"{argv[0]}: {e.strerror}\n")
        sys.exit(_NOT_FOUND)
    while server.poll() is None and not told.to_end():
        pass
    _end_all(server, float(stop_s))
    sys.exit(_exit_code(server))


def _confined(arguments: list[str]) -> list[str]:
    """What is left of them once we, and so what we start, may take no more than is said."""
    while arguments[0].startswith("--"):
        name, _, value = arguments.pop(0).partition("=")
        if name == "--cpus" and _LINUX:
            os.sched_setaffinity(0, map(int, value.split(",")))
        elif name == "--memory-bytes":
            resource.setrlimit(resource.RLIMIT_DATA, (int(value), int(value)))
    return arguments


def _as_a_child() -> None:
    """Within the new process, before it is the command."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_all(server: "subprocess.Popen[bytes]", stop_s: float) -> None:
    """First politely."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGTERM)
    looks = int(stop_s / _LOOK_S)
    while (server.poll() is None or _is_group(server.pid)) and looks > 0:
        select.select([], [], [], _LOOK_S)
        looks -= 1
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()
    while left := _children():
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _is_group(pgid: int) -> bool:
    """Whether there is a process in it; those that have ended are taken leave of first."""
    with suppress(ChildProcessError):
        while os.waitpid(-pgid, os.WNOHANG) != (0, 0):
            pass
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, 0)
        return True
    return False


def _children() -> list[int]:
    """What is left of it, in whatever group; only Linux tells."""
    own = str(os.getpid())
    children = [stat.parent for stat in Path("/proc").glob("[0-9]*/stat") if _parent_in(stat) == own]
    return [int(child.name) for child in children if not _minds_a_stack(child)]


def _minds_a_stack(process: Path) -> bool:
    with suppress(OSError):
        return _STACKS in (process / "cmdline").read_bytes()
    return False


def _parent_in(stat: Path) -> str | None:
    try:
        return stat.read_text("utf-8", "replace").rpartition(")")[2].split()[1]
    except OSError:  # it has ended meanwhile
        return None


def _exit_code(server: "subprocess.Popen[bytes]") -> int:
    """As a shell tells it."""
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


if __name__ == "__main__":
    main()
