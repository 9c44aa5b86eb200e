"""Whom to kill: a part of a stack, or several, by what it is."""

import os
import random
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from benchmarks.stack.left import Ground

from withstand.stack.state import StackState

WHO = ("supervisor", "keeper", "service", "child", "several", "command")


class Victim(NamedTuple):
    """A process, and what it is."""

    name: str
    pid: int


def chosen(
    who: str, state: StackState | None, ground: Ground, rng: random.Random, command: int | None
) -> Sequence[Victim]:
    """One of the kind that is wanted, or of any that there is just now."""
    by_kind = _by_kind(state, ground, command)
    everybody = [victim for kind in by_kind.values() for victim in kind]
    if not everybody:
        return ()
    if who == "several":
        return rng.sample(everybody, min(len(everybody), rng.randint(2, 4)))
    return [rng.choice(by_kind.get(who) or everybody)]


def _by_kind(state: StackState | None, ground: Ground, command: int | None) -> dict[str, list[Victim]]:
    found: dict[str, list[Victim]] = {"command": [Victim("command", command)] if command else []}
    if state is None:
        return found
    units = state.units
    found["supervisor"] = [Victim("supervisor", state.supervisor.pid)] if state.supervisor.is_alive else []
    found["keeper"] = [Victim(f"keeper of {u.name}", u.keeper.pid) for u in units if u.keeper and u.keeper.is_alive]
    found["service"] = [Victim(u.name, u.leader.pid) for u in units if u.leader and u.leader.is_alive]
    known = {victim.pid for kind in found.values() for victim in kind}
    found["child"] = [Victim(f"a child ({pid})", pid) for pid in ground.processes() if pid not in known]
    return found


def kill(victims: Sequence[Victim]) -> None:
    """Those that still are there."""
    for victim in victims:
        with suppress(ProcessLookupError):
            os.kill(victim.pid, signal.SIGKILL)
