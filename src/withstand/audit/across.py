"""What only several files show together: other work, other conditions, other clients, two meanings of one word."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from withstand.audit.words import listed
from withstand.interop.checks import joint_doubts
from withstand.interop.checks.words import input_tokens_each, output_tokens_each, said
from withstand.interop.shape import ImportedRun
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.summary import StageSummary

_WORK_RATIO = 1.05


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One file's conditions and work, as far as it tells."""

    file: str
    model: str | None = None
    dataset: str | None = None
    client: str | None = None
    input_each: float | None = None
    output_each: float | None = None
    """Mean answer length over its runs."""
    imported: tuple[ImportedRun, ...] = ()


def work_of_imports(file: str, runs: Sequence[ImportedRun]) -> Work:
    """Of a stranger's file."""
    return Work(
        file=file,
        model=_one(run.conditions.model for run in runs),
        dataset=_one(run.conditions.dataset for run in runs),
        client=_one(run.source.tool for run in runs),
        input_each=_mean(input_tokens_each(run) for run in runs),
        output_each=_mean(_counted_each(run) for run in runs),
        imported=tuple(runs),
    )


def work_of_stages(file: str, stages: Sequence[StageSummary], *, model: str | None, dataset: str | None) -> Work:
    """Of a run of ours."""
    return Work(
        file=file,
        model=model,
        dataset=dataset,
        client="withstand",
        input_each=_mean(_each(stage.total_input_tokens, stage.completed) for stage in stages),
        output_each=_mean(_each(stage.total_output_tokens, stage.completed) for stage in stages),
    )


def _one(values: Iterator[str | None]) -> str | None:
    told = {value for value in values if value}
    return told.pop() if len(told) == 1 else None


def _mean(values: Iterator[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _each(total: float | None, n: float | None) -> float | None:
    return total / n if total and n else None


def _counted_each(run: ImportedRun) -> float | None:
    """The text counted again is the better witness."""
    counted = _each(run.numbers.get("retokenized_output_tokens"), run.numbers.get("completed"))
    return counted or output_tokens_each(run)


def cross_doubts(works: Sequence[Work], said_before: Sequence[Doubt]) -> tuple[Doubt, ...]:
    """Every doubt that the files raise together, and none raised by itself already."""
    if len(works) < 2:
        return ()
    runs = [run for work in works for run in work.imported]
    known = {doubt.kind for doubt in said_before}
    joint = [doubt for doubt in joint_doubts(runs) if doubt.kind not in known] if runs else []
    own = [doubt for rule in (other_work, other_conditions) if (doubt := rule(works))]
    return tuple(sorted([*own, *joint], key=lambda doubt: not doubt.blocking))


def other_work(works: Sequence[Work]) -> Doubt | None:
    """Answers of other lengths are other work: no times faster."""
    outputs = [(work.file, work.output_each) for work in works]
    prompts = [(work.file, work.input_each) for work in works]
    for name, told in (("output", outputs), ("prompt", prompts)):
        known = [(file, value) for file, value in told if value is not None]
        if len(known) > 1 and _ratio([value for _, value in known]) > _WORK_RATIO:
            low, high = min(value for _, value in known), max(value for _, value in known)
            shown = listed([f"{file} {said(value)}" for file, value in known])
            return Doubt(
                DoubtKind.LENGTHS_DIFFER,
                f"{name.capitalize()} tokens a request are {shown}: {said(high)} / {said(low)} = {high / low:.2f}. The "
                "files did not do the same work.",
                "Nothing here is so many times faster than another; of these numbers only TPOT and ITL compare, and "
                "TTFT where the prompts are alike.",
                blocking=True,
            )
    return None


def _ratio(values: Sequence[float]) -> float:
    return max(values) / min(values)


_FIELDS: tuple[tuple[str, Callable[[Work], str | None]], ...] = (
    ("model", lambda work: work.model),
    ("dataset", lambda work: work.dataset),
    ("client", lambda work: work.client),
)


def other_conditions(works: Sequence[Work]) -> Doubt | None:
    """What differs besides the thing that is compared."""
    differing = []
    for name, field in _FIELDS:
        told = list(dict.fromkeys(value for work in works if (value := field(work))))
        if len(told) > 1:
            differing.append(f"{name} ({listed(told)})")
    if not differing:
        return None
    return Doubt(
        DoubtKind.OTHER_CONDITIONS,
        f"The files differ in {', '.join(differing)}: a difference between their numbers may be that of any of these.",
        "Compare files that differ in one thing only.",
    )
