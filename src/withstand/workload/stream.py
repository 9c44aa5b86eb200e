"""Sessions and due times joined into the requests of one stage."""

import itertools
from collections.abc import Iterator

from withstand.errors import DatasetError, SpecError
from withstand.request import Request
from withstand.spec import Stage, Trace
from withstand.workload.arrivals import due_times_ns
from withstand.workload.dataset import Dataset, Session


def requests(dataset: Dataset, stage: Stage, seed: str) -> Iterator[Request]:
    """The stage's requests, by due time; the turns of a session come one after another.

    Raises:
        DatasetError: it has fewer sessions than asked for, and repeating was not allowed.
        SpecError: the times of a dataset are asked for that has none.
    """
    ids = itertools.count()
    for number, (session, due_ns) in enumerate(_timed_sessions(dataset, stage, seed)):
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
                extra_body=turn.extra_body,
            )


def _timed_sessions(dataset: Dataset, stage: Stage, seed: str) -> Iterator[tuple[Session, int]]:
    sessions = _enough_sessions(dataset, stage)
    if isinstance(stage.arrivals, Trace):
        if not dataset.timed:
            raise SpecError(f"arrivals.kind: `trace` needs a dataset with times of its own; {dataset.name} has none.")
        speed = stage.arrivals.speed
        timed = ((session, round((session.due_ns or 0) / speed)) for session in sessions)
    else:
        times = due_times_ns(stage.arrivals, seed)
        timed = ((session, due_ns) for due_ns, session in zip(times, sessions, strict=False))
    end_ns = None if stage.duration_s is None else stage.duration_s * 1e9
    return itertools.takewhile(lambda pair: end_ns is None or pair[1] < end_ns, timed)


def _enough_sessions(dataset: Dataset, stage: Stage) -> Iterator[Session]:
    """As many as the stage wants; with only a duration, as many as there are (repeated where that is allowed)."""
    assert stage.workload is not None
    if stage.num_prompts is None:
        return _repeated(dataset) if stage.workload.repeat else dataset.sessions()
    return _counted(dataset, stage.num_prompts, repeat=stage.workload.repeat)


def _repeated(dataset: Dataset) -> Iterator[Session]:
    return itertools.chain.from_iterable(dataset.sessions() for _ in itertools.count())


def _counted(dataset: Dataset, count: int, *, repeat: bool) -> Iterator[Session]:
    """A finite dataset is drawn whole before the first is given, so that a shortage is said before anything is sent."""
    source = _repeated(dataset) if repeat else dataset.sessions()
    drawn = list(itertools.islice(source, count)) if dataset.finite else None
    if drawn is None:
        return itertools.islice(source, count)
    if len(drawn) < count:
        raise DatasetError(
            f"{dataset.name} has {len(drawn):,} usable prompts, {count:,} were asked for{dataset.shortage()}. "
            f"Lower --num-prompts to {len(drawn)}, or repeat them by --set workload.repeat=true."
        )
    return iter(drawn)
