"""Sessions and due times joined into the requests of one stage."""

import itertools
from collections.abc import Iterator

import msgspec

from withstand.errors import DatasetError, SpecError
from withstand.request import Request
from withstand.spec import Inf, Stage, Trace
from withstand.workload.arrivals import due_times_ns
from withstand.workload.dataset import Dataset, Session
from withstand.workload.seed import Seed

_LONE_GAP_NS = 1_000_000_000
"""Between two passes of a trace that has no gaps of its own."""


def requests(dataset: Dataset, stage: Stage, seed: Seed) -> Iterator[Request]:
    """The stage's requests, by due time; the turns of a session come one after another.

    Raises:
        DatasetError: it has fewer sessions than asked for, and repeating was not allowed.
        SpecError: the times of a dataset are asked for that has none.
    """
    ids = itertools.count()
    for number, (session, due_ns) in enumerate(_timed_sessions(dataset, _filled(stage), seed.work)):
        for place, turn in enumerate(session.turns):
            yield Request(
                id=next(ids),
                session=number,
                turn=place,
                last_turn=place == len(session.turns) - 1,
                due_ns=due_ns if place == 0 else None,
                think_ns=turn.think_ns if place else 0,
                messages=turn.messages,
                prompt_tokens=turn.prompt_tokens,
                output_tokens=turn.output_tokens,
                ignore_eos=turn.ignore_eos,
                expected=turn.expected,
                extra_body=turn.extra_body,
            )


def _filled(stage: Stage) -> Stage:
    """Without a number and a duration of its own, a stage has the workload's number."""
    assert stage.workload is not None
    if stage.num_prompts is None and stage.duration_s is None:
        return msgspec.structs.replace(stage, num_prompts=stage.workload.num_prompts)
    return stage


def _timed_sessions(dataset: Dataset, stage: Stage, seed: str) -> Iterator[tuple[Session, int]]:
    if isinstance(stage.arrivals, Trace):
        if not dataset.timed:
            raise SpecError(f"arrivals.kind: `trace` needs a dataset with times of its own; {dataset.name} has none.")
        speed = stage.arrivals.speed
        timed = ((session, round((session.due_ns or 0) / speed)) for session in _sessions(dataset, stage, seed))
    else:
        times = due_times_ns(stage.arrivals, seed)
        timed = ((session, due_ns) for due_ns, session in zip(times, _sessions(dataset, stage, seed), strict=False))
    end_ns = _end_ns(stage)
    return itertools.takewhile(lambda pair: pair[1] < end_ns, timed)


def _sessions(dataset: Dataset, stage: Stage, seed: str) -> Iterator[Session]:
    """As many as the stage may take. Too few are told before the first is given, where the number can be known."""
    assert stage.workload is not None
    repeat = stage.workload.repeat
    sessions = itertools.islice(_passes(dataset, repeat=repeat), stage.num_prompts)
    asked = None if repeat or dataset.most is None else _asked(stage, seed, dataset.most)
    if asked is None:
        return sessions
    if dataset.certain:
        usable = dataset.most or 0
    else:
        drawn = list(itertools.islice(sessions, asked))
        usable, sessions = len(drawn), itertools.islice(drawn, asked)
    if usable < asked:
        raise _too_small(dataset, stage, usable)
    return sessions


def _passes(dataset: Dataset, *, repeat: bool) -> Iterator[Session]:
    """One pass, or pass after pass; the times of a later one go on where the one before has ended."""
    begin_ns = 0
    while True:
        count, last_ns = 0, begin_ns
        for session in dataset.sessions():
            count += 1
            last_ns = begin_ns + (session.due_ns or 0)
            yield msgspec.structs.replace(session, due_ns=last_ns) if begin_ns else session
        if not count:
            raise DatasetError(
                f"{dataset.name} has no usable prompts{dataset.shortage()}. "
                "Give another --dataset-path, or other limits in workload.options."
            )
        if not repeat:
            return
        begin_ns = last_ns + ((last_ns - begin_ns) // count or _LONE_GAP_NS)


def _asked(stage: Stage, seed: str, most: int) -> int | None:
    """How many sessions the stage will take, counted no further than matters; None = that shows only as it runs."""
    if isinstance(stage.arrivals, Inf):
        return stage.num_prompts
    if isinstance(stage.arrivals, Trace):
        return stage.num_prompts if stage.duration_s is None else None
    end_ns = _end_ns(stage)
    within = itertools.takewhile(lambda due_ns: due_ns < end_ns, due_times_ns(stage.arrivals, seed))
    return sum(1 for _ in itertools.islice(within, stage.num_prompts or most + 1))


def _end_ns(stage: Stage) -> float:
    return float("inf") if stage.duration_s is None else stage.duration_s * 1e9


def _too_small(dataset: Dataset, stage: Stage, usable: int) -> DatasetError:
    has = f"{dataset.name} has {usable:,} usable prompts"
    asked = f"{stage.num_prompts:,} were asked for" if stage.num_prompts else "fewer than arrive within the duration"
    cure = f"Lower --num-prompts to {usable}" if stage.num_prompts else f"Set --num-prompts {usable}"
    return DatasetError(f"{has}, {asked}{dataset.shortage()}. {cure}, or repeat them by --set workload.repeat=true.")
