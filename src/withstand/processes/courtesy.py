"""A process that lets others go first, also those of other sessions."""

import contextlib
import os
from pathlib import Path

_NICER = 10
_NICEST = 19


def go_after_others(pid: int = 0) -> None:
    """It runs where others leave room, those too that are as nice as it was; 0 = this process.

    Where the kernel shares the processor out by sessions (``sched_autogroup_enabled``, see sched(7)), a priority counts
    only within one: then the session is told too, if the process leads it, and so is alone with what it starts.

    Raises:
        ProcessLookupError: it has ended.
    """
    os.setpriority(os.PRIO_PROCESS, pid, min(os.getpriority(os.PRIO_PROCESS, pid) + _NICER, _NICEST))
    if os.getsid(pid) == (pid or os.getpid()):
        with contextlib.suppress(OSError):  # this kernel knows no such groups
            Path(f"/proc/{pid or 'self'}/autogroup").write_text(str(_NICER), "ascii")
