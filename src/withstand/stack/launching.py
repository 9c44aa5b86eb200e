"""The start of a stack's supervisor, and its first word."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from withstand import clock
from withstand.errors import EngineError
from withstand.files import storage_error
from withstand.processes.identity import Identity
from withstand.stack.composed import SUPERVISOR
from withstand.stack.standing import supervisors_arguments
from withstand.stack.state import blueprint_file, log_of, read_state

_LOOK_S = 0.05
_BORN_S = 60.0
"""What a supervisor may take to say who it is."""
_BORN_LATE_S = 3.0
"""The same, where nobody wants it any more."""


def supervise(folder: Path, interrupts: Sequence[int]) -> Identity:
    """Start a supervisor, which belongs to no terminal and is nobody's child.

    Raises:
        EngineError: it does not tell of itself; ``interrupts``, once there are any, make that a short time.
    """
    log_file = log_of(folder, SUPERVISOR)
    _launch(folder, log_file)
    return announced(folder, log_file, _BORN_S, interrupts)


def _launch(folder: Path, log_file: Path) -> None:
    try:
        with log_file.open("ab") as log, blueprint_file(folder).open("rb") as blueprint:
            started = subprocess.run(  # noqa: S603  our own module
                [sys.executable, *supervisors_arguments(folder)],
                stdin=blueprint,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                check=False,
            )
    except OSError as e:
        raise storage_error(log_file, e) from None
    if started.returncode:
        raise _unborn(log_file)


def announced(folder: Path, log_file: Path, within_s: float, interrupts: Sequence[int] = ()) -> Identity:
    """As its first state says who it is.

    Raises:
        EngineError: there is none in time.
    """
    give_up_ns = clock.now_ns() + int(within_s * 1e9)
    while clock.now_ns() < give_up_ns:
        if state := read_state(folder):
            return state.supervisor
        clock.sleep_s(_LOOK_S)
        if interrupts:
            give_up_ns = min(give_up_ns, clock.now_ns() + int(_BORN_LATE_S * 1e9))
            interrupts = ()
    raise _unborn(log_file)


def _unborn(log_file: Path) -> EngineError:
    return EngineError(f"The stack's supervisor does not start, perhaps for want of room on the disk; see {log_file}.")
