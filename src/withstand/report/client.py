"""The client's own error in one line, of a stage or of the worst of a run: a report always says how true it is."""

from collections.abc import Callable, Iterable, Iterator

from withstand.metrics.summary import ClientError, StageSummary, Summary
from withstand.record import Health
from withstand.report.numbers import at_most, percent

_WAITED_SHARE = 0.01
Reader = Callable[[StageSummary], float | None]


def stage_line(stage: StageSummary) -> str | None:
    """``client error: TTFT ≤ 0.02 ms, ITL ≤ 0.01 ms (p99); sends ≤ 0.41 ms late (p99)``; None = nothing is known."""
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
    bounds = (
        ("TTFT", _worst(stages, _error(lambda e: e.ttft.p99))),
        ("ITL", _worst(stages, _error(lambda e: e.itl.p99))),
    )
    known = [f"{name} {at_most(ms)} ms" for name, ms in bounds if ms is not None]
    if known:
        return f"{', '.join(known)} (p99)"
    e2el_ms = _worst(stages, _error(lambda e: e.e2el.p99))
    return None if e2el_ms is None else f"E2EL {at_most(e2el_ms)} ms (p99)"


def _error(read: Callable[[ClientError], float | None]) -> Reader:
    return lambda stage: None if stage.client_error is None else read(stage.client_error)


def _sends(stages: tuple[StageSummary, ...]) -> str | None:
    late_ms = _worst(stages, lambda stage: stage.lateness.percentiles.get("p99"))
    return None if late_ms is None else f"sends {at_most(late_ms)} ms late (p99)"


def _clock(stages: tuple[StageSummary, ...]) -> str | None:
    own = any(h.finished and h.lag is None for stage in stages for h in stage.health)
    return "arrivals stamped by the program's own clock" if own else None


def _waited(stages: tuple[StageSummary, ...]) -> str | None:
    """A busy neighbour: why sends were late although stamps are true."""
    share = max((share for stage in stages for share in _waits(stage.health)), default=0.0)
    return f"waited for a core {percent(share)} of the time" if share >= _WAITED_SHARE else None


def _waits(health: Iterable[Health]) -> Iterator[float]:
    return (h.runqueue_wait_ns / h.wall_ns for h in health if h.runqueue_wait_ns is not None and h.wall_ns)


def _worst(stages: tuple[StageSummary, ...], read: Reader) -> float | None:
    return max((value for stage in stages if (value := read(stage)) is not None), default=None)
