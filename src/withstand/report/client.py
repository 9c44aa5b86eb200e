"""The client's own error in one line, of a stage or of the worst of a run: a report always says how true it is."""

from collections.abc import Callable, Iterable, Iterator

from withstand.metrics.bounds import LIMITS, TIMES, left_open
from withstand.metrics.summary import StageSummary, Summary
from withstand.record import Health
from withstand.report.numbers import at_most, counted, number, percent

_WAITED_SHARE = 0.01
Reader = Callable[[StageSummary], float | None]


def stage_line(stage: StageSummary) -> str | None:
    """``client error: TTFT p50 ≤ 0.02, p99 ≤ 0.02 ms; …; sends 0.41 ms late (p99)``; None = nothing is known."""
    return _line("client error: ", (stage,))


def run_line(summary: Summary) -> str | None:
    """The same, each number that of the worst stage."""
    worst = ", worst stage" if len(summary.stages) > 1 else ""
    return _line(f"client error{worst}: ", summary.stages)


def _line(title: str, stages: Iterable[StageSummary]) -> str | None:
    stages = tuple(stages)
    facts = [fact for fact in (_times(stages), _sends(stages), _clock(stages), _waited(stages)) if fact]
    return title + "; ".join(facts) if facts else None


def _times(stages: tuple[StageSummary, ...]) -> str | None:
    known = {name: text for name in ("ttft", "itl", "e2el") if (text := _bounds(stages, name))}
    if len(known) > 1:
        known.pop("e2el", None)
    return f"{'; '.join(known.values())}{_left_open(stages, tuple(known))}" if known else None


def _bounds(stages: tuple[StageSummary, ...], name: str) -> str | None:
    """``ITL p50 ≤ 1.92, p99 ≤ 1.92 ms``: a p99 may be known better than its median, which reads like a mistake."""
    worst = [(key, ms) for key in LIMITS if (ms := _worst(stages, _off(name, key))) is not None]
    known = [f"{key} {at_most(max(ms for _, ms in worst[: i + 1]))}" for i, (key, _) in enumerate(worst)]
    return f"{TIMES[name]} {', '.join(known)} ms" if known else None


def _off(name: str, key: str) -> Reader:
    return lambda stage: getattr(getattr(stage.client_error, name, None), key, None)


def _left_open(stages: tuple[StageSummary, ...], names: tuple[str, ...]) -> str:
    """Why a large bound raises no doubt."""
    fewest = {TIMES[name]: answers for name in names if (answers := left_open(stages, name)) is not None}
    if not fewest:
        return ""
    fewest_answers = counted(min(fewest.values()), "answer")
    return f" ({' and '.join(fewest)}: chance alone moves a percentile of {fewest_answers} by more)"


def _sends(stages: tuple[StageSummary, ...]) -> str | None:
    late_ms = _worst(stages, lambda stage: stage.lateness.percentiles.get("p99"))
    return None if late_ms is None else f"sends {number(late_ms)} ms late (p99)"


def _clock(stages: tuple[StageSummary, ...]) -> str | None:
    """A lost worker has told nothing of its clock."""
    own = any(h.finished and h.lag is None and not h.lost for stage in stages for h in stage.health)
    return "arrivals stamped by the program's own clock" if own else None


def _waited(stages: tuple[StageSummary, ...]) -> str | None:
    """A busy neighbour: why sends were late although stamps are true."""
    share = max((share for stage in stages for share in _waits(stage.health)), default=0.0)
    return f"waited for a core {percent(share)} of the time" if share >= _WAITED_SHARE else None


def _waits(health: Iterable[Health]) -> Iterator[float]:
    return (h.runqueue_wait_ns / h.wall_ns for h in health if h.runqueue_wait_ns is not None and h.wall_ns)


def _worst(stages: tuple[StageSummary, ...], read: Reader) -> float | None:
    return max((value for stage in stages if (value := read(stage)) is not None), default=None)
