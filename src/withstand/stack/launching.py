"""The start of a stack's supervisor, and its first word. One that does not say it is ended, and never comes up late."""

import os
import select
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from withstand import clock
from withstand.errors import EngineError
from withstand.files import discard
from withstand.processes.identity import Identity, end
from withstand.stack.composed import SUPERVISOR
from withstand.stack.standing import supervisors_arguments, supervisors_end, supervisors_of
from withstand.stack.state import blueprint_file, log_of, outside, read_state
from withstand.stack.unwritten import unwritten

_LOOK_S = 0.05
_BORN_S = 60.0
"""What a supervisor may take to say who it is."""
_BORN_LATE_S = 3.0
"""The same, where nobody wants it any more; and what it may take to end."""


def supervise(folder: Path, interrupts: Sequence[int]) -> Identity:
    """Start a supervisor, which belongs to no terminal and is nobody's child.

    Raises:
        EngineError: it does not tell of itself; ``interrupts``, once there are any, make that a short time.
    """
    birth = _Birth(folder)
    try:
        return announced(folder, _BORN_S, interrupts, birth.has_failed)
    except EngineError:
        birth.undo()
        raise
    finally:
        birth.close()


class _Birth:
    """A supervisor of which nothing is known but that it, or who becomes its parent, holds the other end of a pipe."""

    def __init__(self, folder: Path) -> None:
        self._folder, log_file = folder, log_of(folder, SUPERVISOR)
        self._line, theirs = os.pipe()
        try:
            with log_file.open("ab") as log, blueprint_file(folder).open("rb") as blueprint:
                self._begun = subprocess.Popen(  # noqa: S603  our own module
                    [sys.executable, *supervisors_arguments(folder)],
                    env=outside(os.environ),
                    stdin=blueprint,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    pass_fds=[theirs],
                )
        except OSError as e:
            os.close(self._line)
            raise unwritten(log_file, e) from None
        finally:
            os.close(theirs)

    def has_failed(self) -> bool:
        """Whether neither of them lives any more."""
        self._begun.poll()
        readable, _, _ = select.select([self._line], [], [], 0)
        return bool(readable)

    def undo(self) -> None:
        """Neither of them starts anything from now on, also where it is held up."""
        discard(blueprint_file(self._folder))
        self._begun.kill()  # first, so that it has no child later
        end(supervisors_of(self._folder), _BORN_LATE_S)

    def close(self) -> None:
        """It is known, or there is none; its parent, which may be held up, has done what it was for."""
        self._begun.kill()
        self._begun.wait()
        os.close(self._line)


def announced(
    folder: Path, within_s: float, interrupts: Sequence[int] = (), has_failed: Callable[[], bool] = bool
) -> Identity:
    """As its first state says who it is.

    Raises:
        EngineError: there is none in time.
    """
    give_up_ns = clock.now_ns() + int(within_s * 1e9)
    while clock.now_ns() < give_up_ns:
        failed = has_failed()
        if state := read_state(folder):
            return state.supervisor
        if failed:
            why = supervisors_end(folder).rstrip(".")
            raise EngineError(f"The stack {folder.name!r} does not come up: {why}. Its logs: {folder / 'logs'}")
        clock.sleep_s(_LOOK_S)
        if interrupts:
            give_up_ns = min(give_up_ns, clock.now_ns() + int(_BORN_LATE_S * 1e9))
            interrupts = ()
    raise EngineError(f"The supervisor of the stack {folder.name!r} does not start; see {log_of(folder, SUPERVISOR)}.")
