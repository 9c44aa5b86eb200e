"""The child's side of ``service``: a process of ours that ends when the one that started it does, even by SIGKILL.

Three ways, because each has a hole: the kernel's own (Linux only; it speaks of the thread that started us), the end of
stdin where that is a pipe (another child may hold a copy of it open), and a look at the parent's id (late by up to a
second).
"""

import ctypes
import os
import select
import signal
import stat
import sys
import threading

_STDIN = 0
_LOOK_S = 1.0
_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Call it first, in the main thread. Ctrl-C is left to the parent, who ends us when he has drained his requests."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True).start()


def _watch(parent: int) -> None:
    lines = [_STDIN] if stat.S_ISFIFO(os.fstat(_STDIN).st_mode) else []
    while os.getppid() == parent:
        readable, _, _ = select.select(lines, [], [], _LOOK_S)
        if readable and not os.read(_STDIN, 4096):
            break
    os._exit(0)  # at once: an engine's threads need not be asked
