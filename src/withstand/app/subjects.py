"""From what stands on the command line to the sides of a comparison.

A side is ``[LABEL=]PATH``: a run folder, another tool's file or folder, a folder of run folders (repeats of one run),
or several paths with commas between them (repeats too). A path that holds several engines gives a side for each.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from withstand.app.context import context_of
from withstand.app.gather import gathered
from withstand.app.measured import Measured, measured_at
from withstand.compare.courses import estimates_of, schedule_of
from withstand.compare.run import ComparedRun, ComparedSide, Turn
from withstand.compare.setting import REQUIRED, Setting
from withstand.compare.told import foreign_estimates, told_estimates
from withstand.errors import UsageError
from withstand.files import distinct_names, is_there, numbered, spelled
from withstand.interop.shape import ImportedRun
from withstand.interop.summary import names_of, stage_of
from withstand.metrics.fold import Besides, StageFold, fold_of
from withstand.metrics.summarize import stage_summary
from withstand.metrics.summary import StageSummary
from withstand.runs import Manifest, RunFolder, RunState, StageEntry, TurnsFolder
from withstand.spec import Slo

_TOOL = "withstand"
_COURSES = Besides(courses=True)
_COMPARED = frozenset({RunState.DONE, RunState.INTERRUPTED, RunState.FAILED})
_HEADINGS_MAX = 8
"""More of them are chapters."""
_LABEL = re.compile(r"^(?P<label>[^=/\\]{1,60})=(?P<path>.+)$")


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """A run, and what it may be called by."""

    run: ComparedRun
    tool: str
    engine: str | None
    path: str


def sides_of(arguments: Sequence[str], by: str | None) -> list[ComparedSide]:
    """Two sides or more, in the order given.

    Raises:
        WithstandError: a path cannot be read, or there is nothing to compare with.
    """
    asked = _named([_parsed(argument) for argument in arguments])
    sides = [side for one in asked for side in _sides_of_one(one, by, single=len(arguments) == 1)]
    if len(sides) < 2:
        raise UsageError(_why_one(arguments, sides))
    return _numbered(sides)


def sides_in_turn(folder: TurnsFolder) -> list[ComparedSide]:
    """A and B: of each block that has a partner its stages, with its turn.

    Raises:
        WithstandError: there is no such pair, or a block cannot be read.
    """
    whole = folder.whole()
    if not whole:
        raise UsageError(f"{folder.path} holds no pair of blocks that was measured.")
    found: tuple[list[_Found], list[_Found]] = ([], [])
    for block in (block for pair in whole for block in pair):
        turn = Turn(block.pair, block.place)
        found[block.side].extend(
            msgspec.structs.replace(f, run=msgspec.structs.replace(f.run, turn=turn))
            for f in _own(RunFolder.open(folder.of(block)))
        )
    return _numbered([_side(side.label, runs, ()) for side, runs in zip(folder.asked.sides, found, strict=True)])


def paths_of(argument: str) -> tuple[Path, ...]:
    """Where a side lies.

    Raises:
        UsageError: it is empty.
    """
    return _parsed(argument).paths


def others_than(baseline: str, arguments: Sequence[str]) -> list[str]:
    """Those that are not the baseline itself, under whatever name."""
    own = _places(_parsed(baseline).paths).keys()
    return [argument for argument in arguments if _places(_parsed(argument).paths).keys() != own]


def _places(paths: Iterable[Path]) -> dict[str, Path]:
    """The first path to each place, by where that really is."""
    found: dict[str, Path] = {}
    for path in paths:
        found.setdefault(os.path.realpath(path), path)
    return found


class _Asked(msgspec.Struct, frozen=True):
    """An argument, understood."""

    text: str
    paths: tuple[Path, ...]
    label: str | None = None
    """As the user has called it."""
    name: str = ""


def _parsed(argument: str) -> _Asked:
    """A path that exists is taken as it stands.

    Raises:
        UsageError: it is empty.
    """
    if not argument:
        raise UsageError("A side is an empty path, which names nothing; the folder that you are in is `.`.")
    if is_there(Path(argument)):
        return _Asked(argument, (Path(argument),))
    labelled = _LABEL.match(argument)
    label, text = (labelled["label"].strip(), labelled["path"]) if labelled else (None, argument)
    texts = [text] if is_there(Path(text)) else [part for part in text.split(",") if part] or [text]
    return _Asked(argument, tuple(_places(map(Path, texts)).values()), label)


def _named(asked: Sequence[_Asked]) -> Iterator[_Asked]:
    """What has no label is called by its path, or by the first of several and how many others there are."""
    names = iter(distinct_names([one.paths[0] for one in asked if one.label is None]))
    for one in asked:
        more = f" +{len(one.paths) - 1}" if len(one.paths) > 1 else ""
        yield msgspec.structs.replace(one, name=one.label or f"{next(names)}{more}")


def _sides_of_one(asked: _Asked, by: str | None, *, single: bool) -> list[ComparedSide]:
    there = {os.path.realpath(one.path): one for path in asked.paths for one in measured_at(path)}
    runs = {spelled(one.path): list(_runs_of(one)) for one in there.values()}
    found = [f for of_path in runs.values() for f in of_path]
    if not found:
        raise UsageError(f"{asked.text} holds nothing that was measured.")
    empty = tuple(path for path, of_path in runs.items() if not of_path)
    field = by or _dividing(found, single=single)
    if field is None:
        return [_side(asked.name, found, empty)]
    split: dict[str, list[_Found]] = {}
    for f in found:
        split.setdefault(_value(f, field) or f"no {field}", []).append(f)
    if by and set(split) == {f"no {by}"}:
        told = ", ".join(_fields(found)) or "nothing by which"
        raise UsageError(f"{asked.text} tells no {by}; its runs tell {told}.")
    prefix = "" if single and asked.label is None else f"{asked.name}: "
    return [_side(f"{prefix}{value}", _without(members, field), empty) for value, members in split.items()]


def _dividing(found: Sequence[_Found], *, single: bool) -> str | None:
    """By what a path falls into sides of its own: engines; where there is no other path, the headings over blocks."""
    if len({f.engine for f in found}) > 1:
        return "engine"
    headings = {_value(f, "heading") for f in found}
    return "heading" if single and 1 < len(headings) <= _HEADINGS_MAX else None


def _runs_of(one: Measured) -> Iterator[_Found]:
    opened = one.read()
    if isinstance(opened, RunFolder):
        yield from _own(opened)
    else:
        runs, path = opened.runs, spelled(one.path)
        yield from (_foreign(run, name, path) for name, run in zip(names_of(runs), runs, strict=True))


def _own(folder: RunFolder) -> Iterator[_Found]:
    """Every stage that was measured."""
    manifest = folder.manifest
    measured = [i for i, e in manifest.in_order() if not e.stage.warmup and e.state in _COMPARED]
    samples = folder.samples()
    with gathered(folder, measured, manifest.plan.goodput, _COURSES) as folds:
        for index in measured:
            summary = stage_summary(folds[index], context_of(folder, index, samples))
            if summary.attempted:
                run = _own_run(folder, index, folds.pop(index), summary)
                yield _Found(run=run, tool=_TOOL, engine=None, path=spelled(folder.path))


def _own_run(folder: RunFolder, index: int, fold: StageFold, summary: StageSummary) -> ComparedRun:
    manifest = folder.manifest
    return ComparedRun(
        source=spelled(folder.path),
        setting=_own_setting(manifest, manifest.stages[index], summary),
        summary=summary,
        estimates=told_estimates(summary) | estimates_of(fold, summary),
        schedule=schedule_of(fold, summary),
        price_per_hour=manifest.plan.asked_price.hour(summary.server.gpus if summary.server else None),
        token_price=manifest.plan.asked_price.against,
    )


def _own_setting(manifest: Manifest, entry: StageEntry, summary: StageSummary) -> Setting:
    workload = entry.stage.workload or manifest.plan.workload
    load = summary.load
    asked = {str(key): str(value) for key, value in workload.options.items()}
    return Setting(
        rate=load.request_rate,
        arrivals=load.arrivals,
        concurrency=load.max_concurrency,
        burstiness=load.burstiness,
        num_prompts=load.num_prompts,
        phase=entry.stage.phase,
        model=manifest.model,
        dataset=" ".join([workload.dataset, *([Path(workload.path).name] if workload.path else [])]),
        input_tokens=_each(summary.total_input_tokens, summary),
        client=_TOOL,
        labels={"backend": manifest.plan.target.backend, **asked},
    )


def _each(total: int | None, summary: StageSummary) -> float | None:
    return round(total / summary.completed, 1) if total and summary.completed else None


def _foreign(run: ImportedRun, name: str, path: str) -> _Found:
    summary = stage_of(run, name)
    asked = run.conditions
    estimates = told_estimates(summary) | foreign_estimates(run)
    schedule = None
    if run.facts:
        fold = fold_of(run.facts.records, Slo(), _COURSES)
        schedule = schedule_of(fold, summary) if run.facts.starts_known else None
        estimates |= estimates_of(fold, summary, rates=run.facts.starts_known, gaps=run.facts.gaps_known)
    arrivals = None if summary.load.arrivals == "unknown" else summary.load.arrivals
    setting = Setting(
        rate=asked.request_rate,
        arrivals=arrivals,
        concurrency=asked.max_concurrency,
        burstiness=asked.burstiness,
        num_prompts=asked.num_prompts,
        model=asked.model,
        dataset=asked.dataset,
        input_tokens=asked.input_tokens or _each(summary.total_input_tokens, summary),
        output_tokens=asked.output_tokens,
        client=None if run.source.tool == "unknown" else run.source.tool,
        labels={k: v for k, v in asked.labels.items() if v != asked.engine},
    )
    compared = ComparedRun(
        source=f"{path} {run.source.position or ''}".strip(),
        setting=setting,
        summary=summary,
        estimates=estimates,
        schedule=schedule,
        notes=run.notes,
        imported=msgspec.structs.replace(run, facts=None),
    )
    return _Found(run=compared, tool=run.source.tool, engine=asked.engine, path=path)


def _value(found: _Found, field: str) -> str | None:
    imported = found.run.imported
    if imported and field in imported.conditions.labels:
        return imported.conditions.labels[field]
    if field == "engine":
        return found.engine
    if field == "position":
        return imported.source.position if imported else None
    value = getattr(found.run.setting, field, None)
    return None if value is None or field == "labels" else str(value)


def _fields(found: Sequence[_Found]) -> list[str]:
    """By which a file could be split: labels of which there are several."""
    told: dict[str, set[str]] = {}
    for f in found:
        labels = {"engine": f.engine or "", **f.run.setting.labels}
        for name, value in labels.items():
            told.setdefault(name, set()).add(value)
    places = {f.run.imported.source.position for f in found if f.run.imported}
    return [name for name, values in told.items() if len(values) > 1] + ["position"] * (len(places) > 1)


def _without(found: Iterable[_Found], field: str) -> list[_Found]:
    """What splits the sides is no condition any more."""
    return [msgspec.structs.replace(f, run=_freed(f.run, field)) for f in found]


def _freed(run: ComparedRun, field: str) -> ComparedRun:
    setting = run.setting
    freed = {field: None} if field in REQUIRED else {}
    labels = {k: v for k, v in setting.labels.items() if k != field}
    return msgspec.structs.replace(run, setting=msgspec.structs.replace(setting, labels=labels, **freed))


def _side(label: str, found: Sequence[_Found], empty: tuple[str, ...]) -> ComparedSide:
    tools = dict.fromkeys(f.tool for f in found)
    return ComparedSide(
        label=label,
        sources=tuple(dict.fromkeys(f.path for f in found)),
        tool=", ".join(tools),
        runs=tuple(f.run for f in found),
        empty=empty,
    )


def _numbered(sides: Sequence[ComparedSide]) -> list[ComparedSide]:
    """Labels that are alike get a number, which makes none of them like another."""
    labels = numbered([side.label for side in sides])
    return [msgspec.structs.replace(side, label=label) for side, label in zip(sides, labels, strict=True)]


def _why_one(arguments: Sequence[str], sides: Sequence[ComparedSide]) -> str:
    found = [_Found(run=run, tool="", engine=None, path="") for run in sides[0].runs]
    fields = _fields(found)
    split = f", or split it by --by {fields[0]}" if fields else ""
    return f"{arguments[0]} is one side; name another to compare it with{split}."
