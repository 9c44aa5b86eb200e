"""Before a heavy plan: can this machine carry it, and with how many workers? Advice only; no run fails for it."""

from collections.abc import Sequence

from withstand.app.calibration.bench import Bench
from withstand.app.calibration.demand import Demand, demand_of
from withstand.app.calibration.store import kept
from withstand.app.screen import Screen
from withstand.errors import WithstandError
from withstand.metrics.calibration import BUSY_SHARE_MAX, Capacity, Load
from withstand.spec import Plan, Stage

_LOOK = "Looking what this client can carry here"
_STREAMED = Load(streamed=True, rate=20_000, tokens=32, gap_s=0.01, seconds=0.35)
_SHORT = Load(streamed=False, rate=3_000, seconds=0.35)


class Foresight:
    """What one worker is good for, and what follows for stages; without a capacity, nothing does."""

    def __init__(self, capacity: Capacity | None = None, *, streamed: bool = True) -> None:
        self._capacity = capacity
        self._streamed = streamed

    def workers(self, stage: Stage) -> int | None:
        """How many the stage needs; None = not known."""
        return demand_of(stage, streamed=self._streamed).workers(self._capacity) if self._capacity else None

    def warning(self, stage: Stage, workers: int, cores: int) -> str | None:
        """One sentence, if that many workers are too few."""
        needed = self.workers(stage)
        if needed is None or self._capacity is None or needed <= workers:
            return None
        demand = demand_of(stage, streamed=self._streamed)
        asked, good_for = _in_words(demand, self._capacity)
        told = f"Stage {stage.name} asks for about {asked}, and one worker here is good for about {good_for}"
        if needed <= cores:
            return f"{told}: use --workers {needed}."
        return f"{told}; it needs {needed} of them, and this machine has {_cores(cores)}: the client may be the limit."


def foresee(plan: Plan, stages: Sequence[Stage], screen: Screen) -> Foresight:
    """From the kept calibration, else from a short look; neither for a plan that any machine can carry."""
    demands = [demand_of(s, streamed=plan.target.stream) for s in stages if not s.warmup]
    if not any(demand.heavy for demand in demands):
        return Foresight()
    calibration = kept()
    capacity = calibration.capacity if calibration else _look(screen, streamed=plan.target.stream)
    return Foresight(capacity, streamed=plan.target.stream)


def _look(screen: Screen, *, streamed: bool) -> Capacity | None:
    """One light load, and what the CPU that it took lets expect; None = that could not be seen."""
    screen.step(_LOOK, 0, 1)
    try:
        with Bench() as bench:
            step = bench.measure(_STREAMED if streamed else _SHORT)
    except (WithstandError, OSError):
        return None
    finally:
        screen.step(_LOOK, 1, 1)
    if not step.events or not step.cpu_share:  # the worker died, and its account with it
        return None
    rate = float(f"{step.load.rate * BUSY_SHARE_MAX / step.cpu_share:.2g}")
    if not streamed:
        return Capacity(requests_per_s=rate)
    return Capacity(tokens_per_s=rate, streams=round(rate * step.load.gap_s), tokens=step.load.tokens)


def _in_words(demand: Demand, capacity: Capacity) -> tuple[str, str]:
    """What is asked for, and what one worker carries of the same."""
    if demand.tokens_per_s:
        return f"{demand.tokens_per_s:,.0f} tokens/s", f"{capacity.tokens_per_s:,.0f}"
    if demand.streams:
        return f"{demand.streams:,} answers at once", f"{capacity.streams:,}"
    return f"{demand.rate_rps:,.0f} requests/s", f"{capacity.requests_per_s:,.0f}"


def _cores(cores: int) -> str:
    return f"{cores} core" if cores == 1 else f"{cores} cores"
