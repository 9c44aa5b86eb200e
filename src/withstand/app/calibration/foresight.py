"""Before a heavy plan: can this machine carry it, and with how many workers? Advice only; no run fails for it."""

from collections.abc import Sequence

from withstand.app.calibration.bench import Bench
from withstand.app.calibration.demand import Demand, demand_of
from withstand.app.calibration.store import kept
from withstand.app.screen import Screen
from withstand.errors import WithstandError
from withstand.metrics.calibration import BUSY_SHARE_MAX, Capacity, Load, Step, Verdict
from withstand.report.numbers import counted
from withstand.spec import Plan, Stage

_LOOK = "Looking what this client can carry here"
_STREAMED = Load(streamed=True, rate=20_000, tokens=32, gap_s=0.01, seconds=0.35)
_WAITED_SHARE_MAX = 0.1
"""A look that had to wait longer for its core, while others had it, says nothing of what this client can carry."""
_SHORT = Load(streamed=False, rate=3_000, seconds=0.35)


class Foresight:
    """What one worker is good for, and what follows for stages; without a capacity, nothing does."""

    def __init__(self, capacity: Capacity | None = None, *, streamed: bool = True, quick: bool = False) -> None:
        """``quick``: the capacity is that of a short look, not of a calibration."""
        self._capacity = capacity
        self._streamed = streamed
        self._quick = quick

    def workers(self, stage: Stage) -> int | None:
        """How many the stage needs; None = not known."""
        return demand_of(stage, streamed=self._streamed).workers(self._capacity) if self._capacity else None

    def advice(self, stage: Stage, workers: int, cores: int) -> str | None:
        """One sentence: that many workers are enough, or too few, or it cannot be told; None = nothing is known."""
        if self._capacity is None:
            return None
        needed = self.workers(stage)
        if needed is None:
            return f"What stage {stage.name} asks of the client is not known beforehand; {_taken(workers)} taken."
        asked, good_for = _in_words(demand_of(stage, streamed=self._streamed), self._capacity)
        look = " by a quick look" if self._quick else ""
        told = f"Stage {stage.name} asks for about {asked}, and one worker here is good for about {good_for}{look}"
        if needed <= workers:
            return f"{told}: {_taken(workers)} enough."
        if needed <= cores:
            return f"{told}: use --workers {needed}."
        has = counted(cores, "core")
        return f"{told}; it needs {needed} of them, and this machine has {has}: the client may be the limit."


def foresee(plan: Plan, stages: Sequence[Stage], screen: Screen) -> Foresight:
    """From the kept calibration, else from a short look; neither for a plan that any machine can carry."""
    streamed = plan.target.stream
    demands = [demand_of(s, streamed=streamed) for s in stages if not s.warmup]
    if not any(demand.heavy for demand in demands):
        return Foresight()
    if calibration := kept():
        return Foresight(calibration.capacity, streamed=streamed)
    step = _look(screen, streamed=streamed)
    if step is None or not _tells(step):
        screen.message(f"What this client can carry here cannot be told now: {_why_not(step)}.")
        return Foresight()
    return Foresight(_expected(step), streamed=streamed, quick=True)


def _look(screen: Screen, *, streamed: bool) -> Step | None:
    """One light load; None = that was not possible."""
    screen.step(_LOOK, 0, 1)
    try:
        with Bench() as bench:
            return bench.measure(_STREAMED if streamed else _SHORT)
    except (WithstandError, OSError):
        return None
    finally:
        screen.step(_LOOK, 1, 1)


def _tells(step: Step) -> bool:
    """Whether nothing but the client had a part in what was seen: its cost is that of a token only then."""
    own = step.verdict is Verdict.GOOD or step.saturated
    seen = bool(step.events) and step.cpu_share > 0  # 0: the worker died, and its account with it
    return own and seen and (step.waited_share or 0.0) <= _WAITED_SHARE_MAX


def _why_not(step: Step | None) -> str:
    if step is None or not step.events:
        return "the null server or a worker did not come up"
    if step.verdict is Verdict.SERVER:
        return "the null server was at its own limit"
    return "other programs had the cores"


def _expected(step: Step) -> Capacity:
    """What the CPU that a light load took lets expect, to one digit: it says no more."""
    rate = float(f"{step.load.rate * BUSY_SHARE_MAX / step.cpu_share:.1g}")
    if not step.load.streamed:
        return Capacity(requests_per_s=rate)
    return Capacity(tokens_per_s=rate, streams=round(rate * step.load.gap_s), tokens=step.load.tokens)


def _in_words(demand: Demand, capacity: Capacity) -> tuple[str, str]:
    """What is asked for, and what one worker carries of the same."""
    if demand.tokens_per_s:
        return f"{demand.tokens_per_s:,.0f} tokens/s", f"{capacity.tokens_per_s:,.0f}"
    if demand.streams:
        return f"{demand.streams:,} answers at once", f"{capacity.streams:,}"
    return f"{demand.rate_rps:,.0f} requests/s", f"{capacity.requests_per_s:,.0f}"


def _taken(workers: int) -> str:
    return f"{counted(workers, 'worker')} {'is' if workers == 1 else 'are'}"
