"""From a run folder, whole or cut short, or another tool's file, to its summary: what ``withstand report`` shows."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from withstand.app.budget import is_same
from withstand.app.cold import cold_and_warm, cold_way
from withstand.app.context import context_of
from withstand.app.costing import Costing
from withstand.app.doctor.kept import kept
from withstand.app.estimate import lasting
from withstand.app.gather import gathered
from withstand.app.limit import limit_in
from withstand.app.loaded import Loaded, LoadedStage
from withstand.app.notes import notes_of
from withstand.control.course import promised_times
from withstand.doctor.doubts import doubts_of
from withstand.doctor.finding import Diagnosis
from withstand.errors import StorageError
from withstand.files import distinct_names
from withstand.metrics.cold import Met, cold_start
from withstand.metrics.context import StageContext
from withstand.metrics.fold import Besides, StageFold
from withstand.metrics.series import fold_series
from withstand.metrics.summarize import stage_summary, summarize
from withstand.metrics.summary import LeftOut
from withstand.report.about import About
from withstand.report.numbers import counted
from withstand.report.write import write_reports
from withstand.runs import NOT_MISSED, Manifest, RunFolder, RunState, StageEntry, still_runs
from withstand.spec import Plan, Price

if TYPE_CHECKING:
    from withstand.app.measured import Measured

_SHOWN = frozenset({RunState.DONE, RunState.RUNNING, RunState.INTERRUPTED, RunState.FAILED})
_LEFT_OUT = frozenset({RunState.LEFT_OUT, RunState.TOO_LONG, RunState.TOO_HEAVY})


def damage_told(damaged_lines: int) -> str:
    """One sentence on lines that are no records."""
    return f"{counted(damaged_lines, 'line')} of the records, damaged or cut off."


class Loader:
    """Loads a run; a stage that is finished is computed once.

    A price is laid over the plan's. Charts cost time, and not everybody shows them.
    """

    def __init__(self, price: Price | None = None, *, charts: bool = True) -> None:
        self._costing = Costing(price)
        self._charts = charts
        self._done: dict[int, LoadedStage] = {}

    def stage(self, folder: RunFolder, index: int) -> LoadedStage:
        """One stage, from its records."""
        return self.stages(folder, [index])[0]

    def stages(self, folder: RunFolder, indexes: Sequence[int]) -> list[LoadedStage]:
        """Several, by one reading of the records."""
        loaded = {i: self._done[i] for i in indexes if i in self._done}
        new = [i for i in indexes if i not in loaded]
        if new:
            plan = folder.manifest.plan
            with gathered(folder, new, plan.goodput, Besides(charts=self._charts)) as folds:
                samples = folder.samples()
                entries = folder.manifest.stages
                part = cold_and_warm(folder.manifest)
                for i in new:
                    fold, context = folds.pop(i), context_of(folder, i, samples)
                    met = Met.of(fold, cold=part[i], ready_s=entries[i].ready_s) if i in part else None
                    loaded[i] = self._loaded(fold, context, plan, entries[i], met)
        self._done |= {i: loaded[i] for i in new if folder.manifest.stages[i].state is not RunState.RUNNING}
        return [loaded[i] for i in indexes]

    def load(self, folder: RunFolder) -> Loaded:
        """Every stage that has records and counts: no warm-up, nothing that was run again."""
        manifest = folder.manifest
        shown = [i for i, e in manifest.in_order() if e.state in _SHOWN and not e.stage.warmup]
        stages = [s for s in self.stages(folder, shown) if s.summary.attempted]
        silent = {s.summary.name for s in stages if not s.summary.completed}
        partial = why_partial(manifest, silent) or _why_missing(manifest, stages)
        diagnosis = kept(folder.path)
        summary = summarize(
            [s.summary for s in stages],
            backend=manifest.plan.target.backend,
            model_id=manifest.model,
            target=manifest.target,
            complete=partial is None,
            doubts=doubts_of(diagnosis) if diagnosis else (),
        )
        limit = limit_in(manifest, summary.stages, {s.summary.name: s.times for s in stages})
        cold = cold_start(cold_way(manifest.plan), (s.met for s in stages if s.met))
        economy = self._costing.run([s.summary for s in stages if not (s.met and s.met.cold)], manifest, limit, cold)
        summary = msgspec.structs.replace(
            summary,
            dataset=_datasets([manifest.stages[i] for i in shown], manifest.plan),
            partial=partial,
            economy=economy,
            cold_start=cold,
            left_out=_left_out(manifest),
            notes=notes_of(manifest),
        )
        return Loaded(
            summary,
            [s.series for s in stages if s.series],
            _about(manifest, diagnosis),
            damaged_lines=folder.damaged_lines,
            limit=limit,
        )

    def _loaded(
        self, fold: StageFold, context: StageContext, plan: Plan, entry: StageEntry, met: Met | None
    ) -> LoadedStage:
        summary = self._costing.stage(stage_summary(fold, context), fold, plan)
        promises = plan.find_limit.promises if plan.find_limit else ()
        times = promised_times(fold.latencies, entry.look, promises) if entry.look else ()
        return LoadedStage(summary, fold_series(fold, context) if self._charts else None, times, met)


def load_run(path: Path) -> Loaded:
    """A run folder.

    Raises:
        WithstandError: it is none, or is damaged.
    """
    return Loader().load(RunFolder.open(path))


def report_again(path: Path, note: str | None = None) -> None:
    """A run's own files, as they come out now: beside its page another may have been written, or there is a note more.

    Raises:
        WithstandError: it cannot be read, or they cannot be written.
    """
    if note:
        folder = RunFolder.open(path)
        notes = tuple(dict.fromkeys((*folder.manifest.notes, note)))
        folder.update(msgspec.structs.replace(folder.manifest, notes=notes))
    run = load_run(path)
    write_reports(path, run.summary, run.series, run.about, run.limit)


def load_runs(paths: Sequence[Path], price: Price | None = None, *, charts: bool = True) -> Loaded:
    """One run or result file, or the stages of several side by side, each named after its folder or file.

    A price is laid over those of our runs' plans. A damaged one does not hide the others.

    Raises:
        WithstandError: a path is neither, or all are damaged.
    """
    from withstand.app.measured import measured_at  # noqa: PLC0415  a run has no use for everybody's formats

    runs: list[tuple[Path, Loaded]] = []
    damaged: list[StorageError] = []
    found = [one for path in paths for one in measured_at(path)]
    for one in found:
        try:
            runs += [] if one.is_nothing else [(one.path, _loaded(one, price, charts=charts))]
        except StorageError as e:
            damaged.append(e)
    if not runs:
        raise damaged[0]
    whole = _side_by_side(runs) if len(runs) > 1 else runs[0][1]
    beside = [f"Left out, {what}" for one in found if one.is_nothing for what in one.left_out]
    return msgspec.structs.replace(whole, notices=(*whole.notices, *beside), unread=tuple(map(str, damaged)))


def _loaded(one: "Measured", price: Price | None, *, charts: bool) -> Loaded:
    opened = one.read()
    if isinstance(opened, RunFolder):
        return Loader(price, charts=charts).load(opened)
    from withstand.app.foreign import load_foreign  # noqa: PLC0415

    return load_foreign(opened, one.path, price, charts=charts)


def _side_by_side(loaded: Sequence[tuple[Path, Loaded]]) -> Loaded:
    names, runs = distinct_names([path for path, _ in loaded]), [run for _, run in loaded]
    pairs = list(zip(names, runs, strict=True))
    summary = summarize(
        [msgspec.structs.replace(s, name=f"{name}/{s.name}") for name, run in pairs for s in run.summary.stages],
        backend=_common([run.summary.backend for run in runs]),
        model_id=_common([run.summary.model_id for run in runs]),
        target=_common([run.summary.target for run in runs]),
        complete=all(run.summary.complete for run in runs),
    )
    series = [msgspec.structs.replace(s, name=f"{name}/{s.name}") for name, run in pairs for s in run.series]
    partial = [f"{name}: {run.summary.partial}" for name, run in pairs if run.summary.partial]
    left_out = [
        msgspec.structs.replace(one, stage=f"{name}/{one.stage}") for name, run in pairs for one in run.summary.left_out
    ]
    notes = tuple(f"{name}: {note}" for name, run in pairs for note in run.summary.notes)
    summary = msgspec.structs.replace(
        summary,
        dataset=_common([run.summary.dataset for run in runs]),
        partial="\n".join(partial) or None,
        left_out=tuple(left_out),
        notes=notes,
    )
    about = msgspec.structs.replace(runs[0].about, title=", ".join(names))
    return Loaded(
        summary,
        series,
        about,
        damaged_lines=sum(run.damaged_lines for run in runs),
        imported=tuple(imported for run in runs for imported in run.imported),
        notices=tuple(notice for run in runs for notice in run.notices),
    )


def _common(values: Sequence[str | None]) -> str | None:
    """What all have; None where they differ."""
    return values[0] if len(set(values)) == 1 else None


def _datasets(entries: Sequence[StageEntry], plan: Plan) -> str | None:
    return ", ".join(dict.fromkeys((entry.stage.workload or plan.workload).dataset for entry in entries)) or None


def why_partial(manifest: Manifest, silent: Collection[str] = ()) -> str | None:
    """One sentence on why a run is not whole; None = it is. ``silent``: stages that ended without a good answer."""
    planned = wanted(manifest)
    done = sum(e.state is RunState.DONE for e in planned)
    measured = [e for e in planned if not e.stage.warmup]
    empty = sum(e.had_no_arrival for e in measured)
    ended = [e.name for e in measured if e.state is RunState.DONE and not e.had_no_arrival]
    unheard = sum(name in silent for name in ended)
    so_far = f"{len(ended) - unheard} of {counted(len(measured), 'stage')} complete"
    so_far += f", {unheard} ended without a good answer" if unheard else ""
    so_far += f", {empty} had no arrival" if empty else ""
    if manifest.state is RunState.DONE and done == len(planned):
        return f"Partial: {so_far}." if empty else None
    if manifest.state is RunState.RUNNING:
        if still_runs(manifest.writer):
            return f"Partial: the run is still going on; {so_far}."
        return f"Partial: the run was killed or crashed; {so_far}. `--resume` goes on with it."
    if manifest.state is RunState.INTERRUPTED:
        return f"Partial: the run was interrupted; {so_far}. `--resume` goes on with it."
    left_out = [e.name for e in planned if e.state is RunState.LEFT_OUT]
    if manifest.state is RunState.DONE and done + len(left_out) == len(planned):
        more = "by --minutes 5" if manifest.argv[:1] == ("demo",) else "by a larger --budget"
        return (
            f"Partial: the budget left no time for {', '.join(left_out)}; {so_far}. "
            f"Measure anew with more time, {more}, or when the machine is less busy."
        )
    told = manifest.error or next((e.error for e in planned if e.error), None)
    why = f" ({told})" if told else ""
    return f"Partial: the run could not go on{why}; {so_far}."


def wanted(manifest: Manifest) -> list[StageEntry]:
    """The stages of a whole run, warm-ups too."""
    return [e for e in manifest.stages if e.state not in NOT_MISSED and not _is_again(e, manifest)]


def _is_again(entry: StageEntry, manifest: Manifest) -> bool:
    """A further cycle that the budget left no time for: what it would have measured is measured."""
    if manifest.plan.cycles == 1 or entry.state is not RunState.LEFT_OUT:
        return False
    return any(e.state is RunState.DONE and is_same(e.stage, entry.stage) for e in manifest.stages)


def _left_out(manifest: Manifest) -> tuple[LeftOut, ...]:
    measured = [entry for _, entry in manifest.in_order() if not entry.stage.warmup]
    return tuple(
        LeftOut(entry.name, why_no_numbers(entry), no_arrival=entry.had_no_arrival)
        for entry in measured
        if entry.state in _LEFT_OUT or entry.had_no_arrival
    )


def why_no_numbers(entry: StageEntry) -> str:
    """Half a sentence on a stage that was left out, or had no arrival."""
    if not entry.had_no_arrival:
        return entry.error or "nobody has told why"
    within = f" in {lasting(entry.stage.duration_s)}" if entry.stage.duration_s is not None else ""
    return f"no arrival was drawn{within}; give it longer"


def _why_missing(manifest: Manifest, found: Sequence[LoadedStage]) -> str | None:
    """Somebody has removed records of stages that were carried out."""
    names = {s.summary.name for s in found}
    done = [e for e in manifest.stages if e.state is RunState.DONE and not e.stage.warmup and e.planned_requests]
    gone = [e.name for e in done if e.name not in names]
    return f"Partial: the records of {', '.join(gone)} are gone from the folder." if gone else None


def _about(manifest: Manifest, diagnosis: Diagnosis | None) -> About:
    return About(
        title=manifest.model or manifest.target or "withstand",
        created_utc=manifest.created_utc,
        version=manifest.version,
        plan=msgspec.to_builtins(manifest.plan),
        machine=manifest.machine | {f"engine: {k}": v for k, v in (manifest.engine or {}).items()},
        engine=manifest.engine["name"] if manifest.engine else None,
        diagnosis=diagnosis,
    )
