"""One service that the supervisor has started: its keeper, its log, whether it is told to end, and how it ended.

A keeper that is held up, as by SIGSTOP, hears nothing: once its time is over it is killed, and the supervisor, whose
child then becomes what it has left, ends that.
"""

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from withstand.processes import KEEPER_S, under_keeper
from withstand.processes.diary import note
from withstand.processes.identity import Identity, children_of, identity_of
from withstand.processes.log import opened
from withstand.processes.words import killer
from withstand.spec.stack import Room
from withstand.stack.blueprint import Process
from withstand.stack.question import Question
from withstand.stack.service import last_words, not_ready
from withstand.stack.state import log_of

_STARVED = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS})
_WANTS_MEMORY = re.compile(r"memory|bad_alloc|(cannot|failed to) map", re.IGNORECASE)
"""How programs and the loader say that they get no more."""
_STAYS = "a service must stay in the foreground until it is told to end"


class Kept:
    """A service that was started: its keeper, and its log, which is open, and where its part of that begins."""

    def __init__(self, process: Process, keeper: "subprocess.Popen[bytes]", log: int, log_start: int) -> None:
        self.process = process
        self.keeper = keeper
        self.log = log
        self.log_start = log_start
        self.identity = identity_of(keeper.pid)
        self.leader: Identity | None = None
        self.gone_s: float | None = None
        """Since when the leader is known to have ended; the keeper ends the rest of its group then."""
        self.dismissed: str | None = None
        """Why it is ended, if that is a fault of its own."""
        self._told_s: float | None = None
        self._was_killed = False
        self.ask_anew()

    def ask_anew(self) -> None:
        """Whether it is ready: whoever has answered so far was another."""
        self.health = Question(self.process.health_url)

    def look_for_leader(self, now_s: float) -> None:
        """The service itself, its keeper's child: who it is, or that it is no more."""
        if self.leader is None:
            self.leader = next(iter(children_of(self.keeper.pid)), None)
        elif self.gone_s is None and not self.leader.is_alive:
            self.gone_s = now_s

    def let_go(self, now_s: float) -> None:
        """Have the keeper end it; also more than once."""
        self._told_s = self._told_s or now_s
        assert self.keeper.stdin is not None
        with suppress(BrokenPipeError):
            self.keeper.stdin.close()

    def dismiss(self, reason: str, now_s: float) -> None:
        """The same, of one that is not as it should be."""
        self.dismissed = reason
        self.let_go(now_s)

    def has_ended(self, now_s: float) -> bool:
        """Whether its keeper has; one that takes longer than it may to end what is to end is killed."""
        if self.keeper.poll() is not None:
            return True
        since_s = min(at_s for at_s in (self._told_s, self.gone_s, now_s) if at_s is not None)
        if now_s - since_s > self._end_s and not self._was_killed:
            self._was_killed = True
            self.keeper.kill()
            note(self.log, f"{self.process.name}: {self._why_killed}")
        return False

    @property
    def _end_s(self) -> float:
        return self.process.upkeep.stop_s + KEEPER_S

    @property
    def _why_killed(self) -> str:
        return f"its keeper, process {self.keeper.pid}, had not ended it within {self._end_s:g} s, and was killed"

    def end(self, *, was_ready: bool) -> str:
        """How it ended, and why."""
        if self.dismissed is not None:
            return self.dismissed
        if self._was_killed:
            return f"has ended, but {self._why_killed}."
        words = f"ended{self.last_words()}"
        return words if was_ready or self.keeper.poll() else f"{words.rstrip('.')}; {_STAYS}."

    def last_words(self) -> str:
        """How it ended, if it did, and what it has said."""
        code = self.keeper.poll()
        said = last_words(self.log, self.log_start, code, self.process.reason)
        return in_its_room(said, code, self.process.upkeep.room)

    def why_late(self) -> str:
        """Of one whose time to become ready is over."""
        process = self.process
        return f"{not_ready(process.upkeep.ready_s, process.health_url, self.health.status)}{self.last_words()}"

    def close(self) -> None:
        """Nothing more is read of it."""
        os.close(self.log)


def in_its_room(said: str, code: int | None, room: Room) -> str:
    """What a service has said at its end, with a word of the memory that it may have, where want of that may be why."""
    if room.memory_gb is None or not (killer(code) in _STARVED or _WANTS_MEMORY.search(said)):
        return said
    return f"{said.rstrip('.')}; perhaps its room.memory_gb = {room.memory_gb:g} is too little."


def begun(process: Process, folder: Path, env: dict[str, str]) -> Kept:
    """It, started.

    Raises:
        OSError: it cannot be.
        ValueError: what it is given holds a NUL, or a name that no variable can have.
    """
    log = opened(log_of(folder, process.name))
    try:
        note(log, f"{process.name} starts")
        start = os.fstat(log).st_size
        keeper = subprocess.Popen(  # noqa: S603 - argv is built by us, without a shell
            _keeper(process),
            env=env,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except BaseException:
        os.close(log)
        raise
    return Kept(process, keeper, log, start)


def _keeper(process: Process) -> tuple[str, ...]:
    room = process.upkeep.room
    limits = [f"--cpus={','.join(map(str, room.cpus))}"] if room.cpus else []
    limits += [f"--memory-bytes={room.memory_gb * 1e9:.0f}"] if room.memory_gb else []
    return under_keeper(process.argv, process.upkeep.stop_s, limits)
