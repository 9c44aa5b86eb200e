"""Up and down, again and again, with a kill -9 of something at some moment: what is left afterwards?

    python -m benchmarks.stack.cycles STACK.toml [--cycles N] [--kills SHARE] [--seed N]

Every cycle brings the stack up by ``withstand up``, asks it once, and takes it down by ``withstand down``. In some of
them one part (the supervisor, a keeper, a service, a child of one, the command itself), or several, are killed while it
comes up, while it runs, or while it goes down. Then nothing may be left: no process, no port, no file, no shared
memory. Everything is below a temporary folder, which stands in the environment of all that is started: so what is left
is found without believing the stack's own records. Linux only.
"""

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.stack.left import Ground, Left
from benchmarks.stack.verbs import Verbs
from benchmarks.stack.victims import WHO, Victim, chosen, kill

from withstand.spec.stack import stack_from_file

MOMENTS = ("up", "running", "down")
_DIES_S = 40.0
"""What services may take to end by themselves once their supervisor is killed: two times ``stop_s``, and some."""


class Cycle:
    """One of them: what was done, and what came of it."""

    def __init__(self, number: int, moment: str, at_s: float, who: str) -> None:
        self.number, self.moment, self.at_s, self.who = number, moment, at_s, who
        self.victims: Sequence[Victim] = ()
        self.up_s = self.down_s = 0.0
        self.came_up = False
        self.alone_s: float | None = None
        self.left: Left | None = None

    def line(self) -> str:
        """A row of the table."""
        victims = ", ".join(v.name for v in self.victims) or "-"
        alone = "" if self.alone_s is None else f"{self.alone_s:.1f}"
        when = f"{self.moment} +{self.at_s:.1f} s" if self.moment != "-" else "-"
        up = f"{self.up_s:.1f}" if self.came_up else f"no ({self.up_s:.1f})"
        return f"{self.number:>5}  {when:<16} {victims:<34} {up:>10} {alone:>6} {self.down_s:>6.1f}  {self.left}"


HEAD = f"{'cycle':>5}  {'killed at':<16} {'what':<34} {'up s':>10} {'alone':>6} {'down s':>6}  left"


def main() -> int:
    """The cycles, a line each; 1 where anything was left."""
    asked = _arguments()
    rng = random.Random(asked.seed)
    name = stack_from_file(asked.stack).name
    home = Path(tempfile.mkdtemp(prefix="cycles-"))
    ground, verbs = Ground(home), Verbs(home, asked.stack, name)
    print(HEAD, flush=True)
    cycles: list[Cycle] = []
    for number in range(asked.cycles):
        cycle = _drawn(number, rng, cycles, asked.kills)
        _go_through(cycle, verbs, ground, rng)
        print(cycle.line(), flush=True)
        cycles.append(cycle)
    bad = [cycle for cycle in cycles if cycle.left]
    clean = [cycle for cycle in cycles if not cycle.victims]
    print(
        f"{len(cycles)} cycles, {len(cycles) - len(clean)} with a kill; something left: {len(bad)}. "
        f"Undisturbed: up {statistics.median(c.up_s for c in clean):.1f} s, "
        f"down {statistics.median(c.down_s for c in clean):.1f} s (medians)."
    )
    if not bad:
        shutil.rmtree(home)
    return 1 if bad else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stack", type=Path, metavar="STACK.toml")
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--kills", type=float, default=0.8, help="share of the cycles in which something is killed")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _drawn(number: int, rng: random.Random, before: Sequence[Cycle], share: float) -> Cycle:
    """The first is undisturbed: it tells how long up and down take."""
    draw, moment, who, part = rng.random(), rng.choice(MOMENTS), rng.choice(WHO), rng.random()
    if not before or draw >= share:
        return Cycle(number, "-", 0.0, "-")
    spans = {"up": before[0].up_s, "running": 2.0, "down": before[0].down_s}
    return Cycle(number, moment, part * spans[moment], who)


def _go_through(cycle: Cycle, verbs: Verbs, ground: Ground, rng: random.Random) -> None:
    ports: set[int] = set()
    with ground.watched() as seen:
        began_s = time.monotonic()
        up = verbs.up()
        if cycle.moment == "up":
            _strike(cycle, verbs, ground, rng, up.pid)
        cycle.came_up = up.wait() == 0
        cycle.up_s = time.monotonic() - began_s
        ports |= verbs.ports()
        if cycle.came_up and not cycle.victims:  # what was killed in the last moment need not answer
            verbs.ask()
        if cycle.moment == "running":
            _strike(cycle, verbs, ground, rng, None)
        if any(victim.name == "supervisor" for victim in cycle.victims):
            cycle.alone_s = ground.until_empty(_DIES_S)
        began_s = time.monotonic()
        down = verbs.down()
        if cycle.moment == "down":
            _strike(cycle, verbs, ground, rng, down.pid)
        down.wait()
        cycle.down_s = time.monotonic() - began_s
        if cycle.victims:
            verbs.down().wait()  # who sees that a command was killed gives it once more
        cycle.left = ground.left(ports, seen)


def _strike(cycle: Cycle, verbs: Verbs, ground: Ground, rng: random.Random, command: int | None) -> None:
    time.sleep(cycle.at_s)
    cycle.victims = chosen(cycle.who, verbs.state(), ground, rng, command)
    kill(cycle.victims)


if __name__ == "__main__":
    sys.exit(main())
