"""The few numbers of a run that one would tell a colleague: each with its unit and the stage that it was seen in."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from withstand.metrics.rates import telling
from withstand.metrics.reach import Effect, circumstances_of, effect
from withstand.metrics.summary import StageSummary, Summary
from withstand.report.numbers import count, number, percent, plain

Reader = Callable[[StageSummary], float | None]


class Figure(msgspec.Struct, frozen=True):
    """A key figure."""

    label: str
    value: str
    unit: str
    note: str
    against: str = ""
    """The doubts because of which it does not stand, in words; empty = none."""


def figures(summary: Summary) -> Iterator[Figure]:
    """In the order of interest; what is not known is left out."""
    stages = tuple(msgspec.structs.replace(s, doubts=(*s.doubts, *summary.doubts)) for s in summary.stages)
    yield from _agents(stages)
    yield from _answered(stages)
    yield from _span("TTFT, median", "ttft.p50", stages, lambda s: s.ttft.percentiles.get("p50"))
    yield from _span("ITL, median", "itl.p50", stages, lambda s: s.itl.percentiles.get("p50"))
    yield from _best("Output", "tok/s", "output_throughput", stages, lambda s: s.output_throughput)
    yield from _best("Answers", "req/s", "request_throughput", stages, lambda s: s.request_throughput)
    yield from _best("Goodput", "req/s", "request_goodput", stages, lambda s: s.request_goodput)
    yield from _own_lateness(stages)


def _answered(stages: tuple[StageSummary, ...]) -> Iterator[Figure]:
    completed, attempted = sum(s.completed for s in stages), sum(s.attempted for s in stages)
    if attempted:
        note = f"{count(completed)} of {count(attempted)} requests"
        yield Figure("Answered well", percent(completed / attempted), "", note, _against("success_rate", stages))


def _agents(stages: tuple[StageSummary, ...]) -> Iterator[Figure]:
    """What a run of agents is about: whether tasks were solved, in how many calls of the model, and how soon."""
    told = tuple(stage for stage in stages if stage.agent)
    tasks = sum(stage.agent.tasks for stage in told if stage.agent)
    if tasks:
        solved = sum(stage.agent.solved for stage in told if stage.agent)
        note, against = f"{count(solved)} of {count(tasks)} tasks", _against("agent_success_rate", told)
        yield Figure("Tasks solved", percent(solved / tasks), "", note, against)
    if known := _known(told, lambda s: s.agent.steps.percentiles.get("p50") if s.agent else None):
        most = max((stage.agent.steps.max or 0.0 for stage in told if stage.agent), default=0.0)
        yield Figure("Steps a task, median", plain(known[0][0]), "", f"at {known[0][1].name}, {plain(most)} at most")
    yield from _span("Task time, median", "e2el.p50", told, lambda s: s.e2el.percentiles.get("p50"))


def _span(label: str, quoted: str, stages: tuple[StageSummary, ...], read: Reader) -> Iterator[Figure]:
    """The lowest, and in the note the highest."""
    known = _known(stages, read)
    if not known:
        return
    (low, at_low), (high, at_high) = known[0], known[-1]
    note = f"at {at_low.name}" if high == low else f"at {at_low.name}, up to {number(high)} ms at {at_high.name}"
    yield Figure(label, number(low), "ms", note, _against(quoted, (at_low, at_high)))


def _best(label: str, unit: str, quoted: str, stages: tuple[StageSummary, ...], read: Reader) -> Iterator[Figure]:
    if known := _known(telling(stages), read):
        high, at = known[-1]
        note = f"at {at.name}" if len(known) == 1 else f"at most, at {at.name}"
        yield Figure(label, number(high), unit, note, _against(quoted, (at,)))


def _own_lateness(stages: tuple[StageSummary, ...]) -> Iterator[Figure]:
    if known := _known(stages, lambda s: s.lateness.percentiles.get("p99")):
        yield Figure("Our own lateness", number(known[-1][0]), "ms", f"p99 of sends, at worst, at {known[-1][1].name}")


def _known(stages: Sequence[StageSummary], read: Reader) -> list[tuple[float, StageSummary]]:
    """From low to high."""
    values = [(value, stage) for stage in stages if (value := read(stage)) is not None]
    return sorted(values, key=lambda pair: (pair[0], pair[1].name))


def _against(quoted: str, stages: tuple[StageSummary, ...]) -> str:
    """The doubts that take the number away in one of these stages."""
    kinds = [
        doubt.kind.spoken
        for stage in stages
        for doubt in stage.doubts
        if effect(doubt, quoted, circumstances_of(stage)) is Effect.FALLS
    ]
    return ", ".join(dict.fromkeys(kinds))
