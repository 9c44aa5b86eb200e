"""A run's folder while the run goes on: the manifest after each step, the report after each stage."""

import contextlib
import shutil
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace

from withstand import __version__, clock
from withstand.app.attended import Attended
from withstand.app.budget import Lasted, likely_drain_s, likely_s
from withstand.app.census import Census
from withstand.app.estimate import lasting
from withstand.app.heavier import is_heavier
from withstand.app.machine import client_facts
from withstand.app.report import Loader
from withstand.app.screen import Outcome, Screen
from withstand.app.verdict import NOT_MEASURED, exit_code, missed_slo, not_measured
from withstand.control.probe import Look
from withstand.errors import StorageError, UsageError
from withstand.load.stage import StageResult
from withstand.metrics.summary import StageSummary, Summary
from withstand.record import Outage, Record, Status
from withstand.report.write import write_reports
from withstand.runs import (
    Manifest,
    RunFolder,
    RunState,
    StageEntry,
    TokenizerFacts,
    epoch_ns,
    this_process,
)
from withstand.spec import Plan, Stage, redacted
from withstand.spec.arrivals import SECONDS_MAX
from withstand.spec.until import SEARCH_MIN_S
from withstand.stack import EngineInfo
from withstand.wire.reply import one_line
from withstand.workload import Tokenizer

ENGINE_LOG, FLEET_LOG = "engine.log", "fleet.log"
_CUT = {Status.CANCELLED, Status.NOT_SENT}
_AGAIN = {RunState.RUNNING, RunState.INTERRUPTED, RunState.FAILED}


class Journal:
    """Every change is on disk when the method returns."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.epoch_ns = epoch_ns(folder.manifest)
        """What records count from. Once and for all: the wall clock may be set while we run."""
        self._loaded = Loader()
        self._spent_before_ns = folder.manifest.spent_ns
        self._measuring_since_ns: int | None = None

    @classmethod
    def create(cls, plan: Plan, stages: Sequence[Stage], argv: list[str]) -> Self:
        """A new run. What is secret in the plan is not written."""
        now = clock.anchor()
        manifest = Manifest(
            version=__version__,
            created_utc=clock.utc_iso(now.wall_ns),
            anchor=now,
            plan=redacted(plan),
            argv=tuple(argv),
            writer=this_process(),
            machine=client_facts(),
            target=plan.target.base_url,
            stages=_entries(stages, 0),
        )
        return cls(RunFolder.create(Path(plan.output_dir) if plan.output_dir else None, manifest))

    @classmethod
    def reopen(cls, folder: RunFolder, more_s: float | None = None) -> Self:
        """Go on with a run: stages that were cut are superseded and planned again, and so is the warm-up.

        A search for a limit may get more time than it has spent; then it chooses anew what it had no time for.

        Raises:
            UsageError: so much time is too little for one.
        """
        old = folder.manifest
        if more_s is not None and old.plan.find_limit:
            old = _with_time(old, spent_ns(folder) / 1e9 + more_s)
        manifest = replace(
            old,
            state=RunState.RUNNING,
            error=None,
            writer=this_process(),
            stages=_run_again(old.stages, [_again(old, e) for e in old.stages]),
            spent_ns=spent_ns(folder),
        )
        folder.update(manifest)
        return cls(folder)

    @property
    def manifest(self) -> Manifest:
        """As it stands on disk."""
        return self.folder.manifest

    def stage(self, index: int) -> Stage:
        """The stage at a place of the list."""
        return self.manifest.stages[index].stage

    def pending(self) -> list[int]:
        """Places of the stages that are still to be run."""
        return [i for i, entry in self.manifest.in_order() if entry.state is RunState.PLANNED]

    def pending_stages(self) -> tuple[Stage, ...]:
        """The same, as stages."""
        return tuple(self.stage(i) for i in self.pending())

    def too_heavy(self, index: int) -> str | None:
        """One sentence on why a stage need not be tried: a lighter one was too much. None = nobody knows."""
        tried = [entry for entry in self.manifest.stages if entry.too_much and entry.state is RunState.DONE]
        lighter = next((entry for entry in tried if is_heavier(self.stage(index), entry.stage)), None)
        return f"it is heavier than {lighter.name}, where {lighter.ended_by}" if lighter else None

    def known_stages(self) -> list[Stage]:
        """All that there are, carried out or not; of those that were run again the last."""
        return [entry.stage for entry in self.manifest.stages if entry.state is not RunState.SUPERSEDED]

    def spent_ns(self) -> int:
        """For how long stages have been measured so far, in this sitting and those before."""
        since_ns = self._measuring_since_ns
        return self._spent_before_ns + (clock.now_ns() - since_ns if since_ns is not None else 0)

    def likely_drain_s(self, stage: Stage) -> float:
        """How long the last answers of a stage may take, by what was seen."""
        return likely_drain_s(stage, self._lasted())

    def likely_s(self, stage: Stage) -> float:
        """The same, or of all of a stage of a later cycle whose length nobody knows beforehand."""
        again_s = likely_s(stage, self._lasted()) if self.manifest.plan.cycles > 1 else 0.0
        return max(self.likely_drain_s(stage), again_s)

    def _lasted(self) -> list[Lasted]:
        return [
            Lasted(entry.stage, (entry.ended_ns - entry.started_ns) / 1e9)
            for entry in self.manifest.stages
            if entry.ended_ns is not None and entry.started_ns is not None
        ]

    def measured(self) -> list[StageSummary]:
        """What is finished, without warm-ups, in the order of execution."""
        entries = self.manifest.in_order()
        return [self.summarize(i) for i, e in entries if e.state is RunState.DONE and not e.stage.warmup]

    # Changes.

    def add_stages(self, stages: Sequence[Stage]) -> None:
        """More to be run, decided between stages."""
        known = self.manifest.stages
        self._update(stages=(*known, *_entries(stages, len(known))))

    def warm_up_again(self) -> None:
        """What warmed the server up is long ago: it may be cold by now."""
        entries = self.manifest.stages
        self._update(stages=_run_again(entries, [e.stage.warmup and e.state is RunState.DONE for e in entries]))

    def engine(self, engine: EngineInfo) -> None:
        """The engine that we started ourselves."""
        facts = {
            "name": engine.name,
            "model": engine.model,
            "model sha256": engine.sha256,
            "threads": str(engine.threads),
            "context": str(engine.context),
            "ready after": f"{engine.ready_s:.2f} s",
        }
        self._update(engine=facts, engine_ready_s=engine.ready_s)

    def served(self, ready_s: float) -> None:
        """The user's own server that we started."""
        self._update(engine_ready_s=ready_s)

    def endpoint(self, target: str, model: str | None) -> None:
        """Where it goes, and for which model."""
        self._update(target=target, model=one_line(model) if model else None)

    def tokenizer(self, tokenizer: Tokenizer) -> None:
        """Who counts the prompts' tokens."""
        self._update(tokenizer=TokenizerFacts(tokenizer.name, tokenizer.exact))

    def measuring(self) -> None:
        """From now on, time is what a budget is charged with."""
        self._measuring_since_ns = clock.now_ns()

    def leave_out(self, index: int, state: RunState, why: str) -> None:
        """A stage is not run."""
        self._entry(index, state=state, error=why)

    def bound(self, index: int, stage: Stage) -> None:
        """A stage has got an end that the plan did not have."""
        self._entry(index, stage=stage)

    def begin(self, index: int) -> None:
        """A stage starts."""
        self._entry(index, state=RunState.RUNNING)

    def restarted(self, index: int, ready_s: float) -> None:
        """The server was started anew for a stage."""
        self._entry(index, ready_s=ready_s)

    def end(self, index: int, result: StageResult, census: Census, attended: Attended | None = None) -> None:
        """A stage has ended, by itself or not."""
        cut = self.is_cut(index, result)
        state = RunState.INTERRUPTED if cut else RunState.FAILED if result.error else RunState.DONE
        ending = attended.ending if attended else None
        self._entry(
            index,
            state=state,
            started_ns=result.started_ns,
            ended_ns=result.ended_ns,
            planned_requests=result.planned,
            identical_prompts=census.identical_prompts,
            fixed_lengths=census.fixed_lengths,
            health=result.health,
            error=result.error,
            ended_by=ending.because if ending else None,
            too_much=ending is not None and ending.too_much,
            look=attended.found() if attended else None,
        )

    def cut_short(self, index: int, why: str | None) -> None:
        """A stage that has ended was shorter than its plan."""
        if why:
            self._entry(index, cut_short=why)

    def outages(self, seen: Sequence[Outage]) -> None:
        """Services of the stack were away; stages that were summed up before that was known are summed up anew."""
        if tuple(seen) != self.manifest.outages:
            self._if_room(outages=tuple(seen))
            self._loaded = Loader()

    def weighed(self, index: int, look: Look) -> None:
        """What was found of a load has been held against our own error."""
        if look != self.manifest.stages[index].look:
            self._entry(index, look=look)

    def count_texts(self, index: int, tokenizer: Tokenizer, counts: Sequence[tuple[int, int]]) -> None:
        """Answers of a stage that has ended were counted by their text."""
        self.folder.add_text_counts(index, counts)
        self._entry(index, texts_by=TokenizerFacts(tokenizer.name, tokenizer.exact))

    def stage_failed(self, index: int, error: str) -> None:
        """A stage could not be driven."""
        self._entry(index, state=RunState.FAILED, error=error)

    def stage_stands(self, index: int) -> None:
        """What was taken for a failure of the stage was none."""
        self._entry(index, state=RunState.DONE, error=None)

    def interrupted(self) -> None:
        """The user stopped it."""
        self._if_room(state=RunState.INTERRUPTED)

    def failed(self, error: str) -> None:
        """It could not go on."""
        self._if_room(state=RunState.FAILED, error=error)

    def _if_room(self, **changes: Any) -> None:
        """If the disk is full too, that is told elsewhere."""
        with contextlib.suppress(StorageError):
            self._update(**changes)

    def _entry(self, index: int, **changes: Any) -> None:
        stages = list(self.manifest.stages)
        stages[index] = replace(stages[index], **changes)
        self._update(stages=tuple(stages))

    def _update(self, **changes: Any) -> None:
        self.folder.update(replace(self.manifest, spent_ns=self.spent_ns(), **changes))

    # What has come out.

    def is_cut(self, index: int, result: StageResult) -> bool:
        """Whether it was interrupted, and requests were not made, or not waited for."""
        if not result.interrupted:
            return False
        made = sum(h.finished for h in result.health)
        return made < result.planned or any(r.status in _CUT for r in self.folder.records(index))

    def report(self) -> Summary:
        """Bring ``summary.json`` and ``report.html`` up to date."""
        loaded = self._loaded.load(self.folder)
        write_reports(self.folder.path, loaded.summary, loaded.series, loaded.about, loaded.limit)
        return loaded.summary

    def summarize(self, index: int) -> StageSummary:
        """One stage's numbers."""
        return self._loaded.stage(self.folder, index).summary

    def has_results(self) -> bool:
        """Whether a measured stage has left a single record."""
        measured = {i for i, entry in enumerate(self.manifest.stages) if not entry.stage.warmup}
        return any(record.stage in measured for record in self.folder.records())

    def discard(self) -> None:
        """Nothing came of it: leave no empty run behind."""
        shutil.rmtree(self.folder.path, ignore_errors=True)

    def finish(self, screen: Screen, unkept: str | None = None) -> Outcome:
        """Close the folder, write the last report. The first ``unkept`` is told; the numbers are shown anyway."""
        for log in (ENGINE_LOG, FLEET_LOG):
            _drop_empty(self.folder.path / log)
        for step in (self._mark_done, self.folder.close, self.report):
            try:
                step()
            except StorageError as e:
                if unkept is None:
                    screen.message(unkept := str(e))
        loaded = self._loaded.load(self.folder)
        summary = loaded.summary
        return Outcome(
            exit_code=NOT_MEASURED if unkept else exit_code(summary, self.manifest),
            folder=self.folder.path,
            summary=summary,
            missed=missed_slo(summary, self.manifest),
            unmeasured=not_measured(summary) or unkept,
            limit=loaded.limit,
        )

    def _mark_done(self) -> None:
        if self.manifest.state is RunState.RUNNING:
            self._update(state=RunState.DONE)


def ensure_time_left(folder: RunFolder) -> None:
    """Before a run is gone on with: once its stages are superseded, their numbers count no more.

    Raises:
        UsageError: there are stages to run, but the budget is spent.
    """
    manifest = folder.manifest
    budget_s = manifest.plan.budget_s
    if _is_left(manifest) and budget_s is not None and spent_ns(folder) >= budget_s * 1e9:
        raise UsageError(f"{folder.path} has spent its budget of {lasting(budget_s)}; run what is left anew.")


def spent_ns(folder: RunFolder) -> int:
    """What a run has spent; of a stage that was killed, as much as its records tell."""
    killed = [i for i, e in enumerate(folder.manifest.stages) if e.state is RunState.RUNNING]
    return folder.manifest.spent_ns + sum(_span_ns(list(folder.records(i))) for i in killed)


def _span_ns(records: Sequence[Record]) -> int:
    begins = [ns for r in records if (ns := r.started_ns or r.sent_ns) is not None]
    ends = [r.end_ns for r in records if r.end_ns is not None]
    return max(ends) - min(begins) if begins and ends else 0


def _drop_empty(log: Path) -> None:
    """An engine or a fleet that said nothing leaves no file to wonder about."""
    with contextlib.suppress(OSError):
        if log.stat().st_size == 0:
            log.unlink()


def _entries(stages: Sequence[Stage], first: int) -> tuple[StageEntry, ...]:
    return tuple(StageEntry(name=s.name, stage=s, place=i) for i, s in enumerate(stages, start=first))


def _run_again(entries: Sequence[StageEntry], which: Sequence[bool]) -> tuple[StageEntry, ...]:
    """Those are superseded, and planned once more."""
    again = list(compress(entries, which))
    old = [replace(e, state=RunState.SUPERSEDED) if cut else e for e, cut in zip(entries, which, strict=True)]
    return (*old, *(StageEntry(name=e.name, stage=e.stage, place=e.place) for e in again))


def _with_time(manifest: Manifest, budget_s: float) -> Manifest:
    """A search with this budget, in the place of every other that it had.

    Raises:
        UsageError: so little is none.
    """
    search = manifest.plan.find_limit
    assert search is not None
    if budget_s < SEARCH_MIN_S:
        told = f"{lasting(budget_s)} with what was spent before, and a search needs {lasting(SEARCH_MIN_S)}"
        raise UsageError(f"--budget: it makes {told}; give it more.")
    search = replace(search, budget_s=min(budget_s, SECONDS_MAX))
    stages = [replace(e, state=RunState.SUPERSEDED) if e.state is RunState.LEFT_OUT else e for e in manifest.stages]
    plan = replace(manifest.plan, find_limit=search, budget_s=None)
    return replace(manifest, plan=plan, stages=tuple(stages))


def _again(manifest: Manifest, entry: StageEntry) -> bool:
    """Whether a resumed run must run this again: it was cut, or it warmed a server up that may be cold by now."""
    return entry.state in _AGAIN or (entry.stage.warmup and entry.state is RunState.DONE and _is_left(manifest))


def _is_left(manifest: Manifest) -> bool:
    """Whether a resumed run has something to do."""
    return any(e.state in _AGAIN or e.state is RunState.PLANNED for e in manifest.stages)
