"""One run from plan to report: target ready, stages driven one after another, each written as it ends."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from withstand import workload
from withstand.app.aloud import AloudTokenizer
from withstand.app.attended import Attended, attend, watches_queue
from withstand.app.beforehand import foreseen, say_how_long
from withstand.app.budget import Budget, fitted
from withstand.app.calibration.foresight import Foresight
from withstand.app.census import Census
from withstand.app.cooling import Cooling, check_cold
from withstand.app.counting import counted_texts, share_wanted
from withstand.app.crew import Crew, fleet
from withstand.app.doctor.stamp import stamp
from withstand.app.endpoint import Endpoint, check_target, with_base_url
from withstand.app.estimate import to_come
from withstand.app.fitting import tokens_of, too_long
from withstand.app.foretold import check_before_start
from withstand.app.home import NOWHERE, Home
from withstand.app.hunter import Hunter
from withstand.app.journal import Journal, ensure_time_left
from withstand.app.leaving import Leaving
from withstand.app.preflight import check_warmup_of
from withstand.app.rates import decided
from withstand.app.resuming import how_to_go_on, nothing_left
from withstand.app.salt import salted, say_salt, seed_of
from withstand.app.screen import Outcome, Screen, StageProgress
from withstand.app.services import Services, minding
from withstand.app.short import told_of_end, why_cut_short
from withstand.app.stages import all_stages, filled, preconnect_of, unlike
from withstand.app.started import Started
from withstand.app.tail import RecordTail
from withstand.app.watching import check_watch, watching
from withstand.app.work_folder import work_folder
from withstand.control.stop import Noticing, UntilGrowing, rules_of
from withstand.errors import MeasureError, StorageError, TargetError, UsageError, WithstandError
from withstand.load.ask import engine_tokenizer
from withstand.load.job import Report
from withstand.load.patience import Patience
from withstand.load.stage import Order, StageDriver, StageResult
from withstand.metrics.summary import StageSummary
from withstand.request import Request
from withstand.runs import RunFolder, RunState, still_runs
from withstand.spec import Plan, Stage, is_redacted

_WORK = ".work"


More = Callable[[Sequence[StageSummary]], Sequence[Stage]]
"""Asked when no stage is left: further stages, in the light of those that are done; none = it is over."""


def run(plan: Plan, *, argv: list[str], screen: Screen, more: More = lambda _: (), home: Home = NOWHERE) -> Outcome:
    """Measure what the plan asks for.

    Raises:
        WithstandError: nothing was measured; where something was, it is kept and told.
    """
    plan = fitted(plan)
    stages = all_stages(plan)
    check_target(plan.target)
    check_watch(plan.asked_watch)
    check_cold(plan, stages)
    check_before_start(plan, stages)
    asked, plan = plan, salted(plan)
    journal = Journal.create(plan, stages, argv)
    try:
        foresight = foreseen(plan, stages, screen)
        say_how_long(plan, stages, screen)
        say_salt(asked, plan, screen)
        home.note(journal.folder.path)
        return _carry_out(plan, journal, screen, _Given(foresight=foresight, more=more, services=home.services))
    except WithstandError:
        if not journal.has_results():
            journal.discard()
        raise


def resume(folder: Path, *, screen: Screen, more_s: float | None = None, home: Home = NOWHERE) -> Outcome:
    """Go on where a run stopped: finished stages stay, the others are run; a search gets so much more time.

    Raises:
        WithstandError: the folder is no run that can be gone on with.
    """
    run_folder = RunFolder.open(folder)
    plan = run_folder.manifest.plan
    if still_runs(run_folder.manifest.writer) and run_folder.manifest.state is RunState.RUNNING:
        raise UsageError(f"{folder} is being written by process {run_folder.manifest.writer.pid}; stop that first.")
    if is_redacted(plan):
        raise UsageError(f"{folder} was run with a secret in a header or the body, which is not stored; run it anew.")
    if more_s is None:
        ensure_time_left(run_folder)
    home.led(plan, folder)  # refused before anything is changed
    journal = Journal.reopen(run_folder, more_s)
    plan = home.led(journal.manifest.plan, folder)
    if not journal.pending() and _is_over(plan, journal, screen):
        screen.message(nothing_left(plan, folder))
        return journal.finish(screen)
    if not journal.pending():
        journal.warm_up_again()
    check_before_start(plan, journal.pending_stages())
    foresight = foreseen(plan, journal.pending_stages(), screen)
    say_how_long(plan, journal.pending_stages(), screen, journal.known_stages())
    return _carry_out(plan, journal, screen, _Given(foresight=foresight, services=home.services))


class _Given(msgspec.Struct, frozen=True, kw_only=True):
    """What else a run was given."""

    foresight: Foresight
    more: More = lambda _: ()
    services: Services | None = None


def _carry_out(plan: Plan, journal: Journal, screen: Screen, given: _Given) -> Outcome:
    """From an open journal to an outcome; whatever happens, what was measured is reported."""
    mind = minding(given.services, plan.target, journal, screen)
    unkept: str | None = None
    screen.opened(journal.folder.path)
    try:
        with fleet(plan, journal, screen) as hosts, Started(plan, journal, screen) as started:
            if engine := started.engine:
                plan = with_base_url(plan, engine.base_url, engine.model)
            with contextlib.closing(Endpoint(plan.target)) as endpoint:
                journal.endpoint(plan.target.base_url or "", endpoint.model)
                measuring = _Measuring(plan, endpoint, journal, screen)
                measuring.check()
                stamp(plan, journal.folder.path, screen)
                with watching(plan, endpoint, journal.folder, journal.epoch_ns, screen) as look:
                    cooling = Cooling(plan, endpoint, started, screen)
                    measuring.crew = Crew(hosts, given.foresight, look, mind, cooling)
                    measuring.everything(
                        Hunter(plan.find_limit, journal, screen).more if plan.find_limit else given.more
                    )
    except KeyboardInterrupt:
        journal.interrupted()
        screen.message(f"Interrupted. {how_to_go_on(plan, journal.folder.path)}")
    except WithstandError as e:
        journal.failed(str(e))
        if not journal.has_results():
            raise
        screen.message(f"{e} {how_to_go_on(plan, journal.folder.path)}" if isinstance(e, TargetError) else str(e))
        unkept = str(e) if isinstance(e, StorageError) else None
    mind()
    return journal.finish(screen, unkept)


def _is_over(plan: Plan, journal: Journal, screen: Screen) -> bool:
    """Whether nothing follows from what was seen."""
    measured = journal.measured()
    if plan.find_limit:
        return Hunter(plan.find_limit, journal, screen).is_over(measured)
    return not decided(plan, journal.known_stages(), measured)


class _Measuring:
    """The stages of one run against one endpoint."""

    crew: Crew
    """Is there from the first stage on."""

    def __init__(self, plan: Plan, endpoint: Endpoint, journal: Journal, screen: Screen) -> None:
        self._plan = plan
        self._endpoint = endpoint
        self._journal = journal
        self._screen = screen
        self._census = Census()
        self._patience = Patience(tell=screen.message)
        self._tokenizers: dict[str, AloudTokenizer] = {}
        self._budget = Budget(plan.budget_s, journal.spent_ns)
        self._drains = Budget(plan.find_limit.budget_s, journal.spent_ns) if plan.find_limit else self._budget

    def check(self) -> None:
        """What is wrong with the plan is said before anything is sent.

        Raises:
            UsageError: a dataset cannot serve, or no stage fits into the context.
        """
        self._leave_out_too_long()
        self._check_datasets()

    def everything(self, more: More) -> None:
        """All stages that are planned, then those that are added in their light.

        Raises:
            WithstandError: no further stage makes sense.
            KeyboardInterrupt: the user stopped it.
        """
        self._journal.measuring()
        while True:
            while (index := self._next()) is not None:
                self._stage(index)
            if not self._add_stages(more):
                return

    def _next(self) -> int | None:
        """The next stage that can end within the budget; those before it that cannot are left out."""
        for index in self._journal.pending():
            stage = self._journal.stage(index)
            if self._plan.leave_out_heavier and (why := self._journal.too_heavy(index)):
                self._leave_out(index, RunState.TOO_HEAVY, why)
            elif why := self._budget.why_not(stage, self._journal.likely_s(stage)):
                self._leave_out(index, RunState.LEFT_OUT, why)
            else:
                return index
        return None

    def _leave_out(self, index: int, state: RunState, why: str) -> None:
        self._journal.leave_out(index, state, why)
        self._screen.message(f"Stage {self._journal.stage(index).name} is left out: {why}.")

    def _add_stages(self, more: More) -> bool:
        """Those that follow from what was seen; whether there are any."""
        done = self._journal.measured()
        added = decided(self._plan, self._journal.known_stages(), done, self._budget.left_s()) or more(done)
        self._journal.add_stages(filled(self._plan, added))
        return bool(added)

    def _leave_out_too_long(self) -> None:
        if not self._plan.leave_out_too_long or (context := self._endpoint.context()) is None:
            return
        for index in self._journal.pending():
            stage = self._journal.stage(index)
            if too_long(stage, context):
                why = f"its {tokens_of(stage):,} tokens do not fit into the server's context of {context:,}"
                self._leave_out(index, RunState.TOO_LONG, why)
        if all(stage.warmup for stage in self._journal.pending_stages()):
            raise UsageError(
                f"No stage fits into the server's context of {context:,} tokens; give a smaller input_len."
            )

    def _check_datasets(self) -> None:
        for stage in unlike(self._journal.pending_stages()):
            next(self._requests(stage), None)
            self._prepared()

    def _stage(self, index: int) -> None:
        planned, stage = self._journal.stage(index), self._bounded(index)
        try:
            result = self._drive(index, stage)
        except (StorageError, TargetError, UsageError):
            raise
        except MeasureError as e:
            self._screen.message(f"Stage {stage.name} failed: {e}")
            return
        if result.interrupted and stage.warmup:
            raise KeyboardInterrupt
        self._journal.cut_short(index, why_cut_short(planned, self._journal.manifest.stages[index], result))
        if result.storage:  # nor can a report be written
            raise StorageError(result.error)
        self._tell(index, stage)
        if result.error:
            self._screen.message(f"Stage {stage.name}: {result.error}")
        elif told := told_of_end(self._journal.manifest.stages[index], result):
            self._screen.message(told)
        if result.interrupted:
            raise KeyboardInterrupt

    def _bounded(self, index: int) -> Stage:
        """The stage; where a budget is what ends it, that is written down."""
        planned = self._journal.stage(index)
        stage = self._drains.bounded(planned, self._journal.likely_drain_s(planned))
        if stage is not planned:
            self._journal.bound(index, stage)
        return stage

    def _drive(self, index: int, stage: Stage) -> StageResult:
        attended = self._attended(index, stage)
        with work_folder(self._journal.folder.path / _WORK) as work:
            requests = self._prompts(index, stage)
            self.crew.look()
            result = self._load(index, stage, requests, work, attended)
            self.crew.look()
            self.crew.mind()
            try:
                if not result.storage and not self._journal.is_cut(index, result):
                    self._count_texts(index, stage, work)
            finally:  # a stage that is killed before is run again, and so not left without its counts
                self._journal.end(index, result, self._census, attended)
        return result

    def _attended(self, index: int, stage: Stage) -> Attended | None:
        """None where only its limit ends it, and nothing is looked for."""
        rules = list(rules_of(stage.until, math.inf if stage.duration_s is None else stage.duration_s))
        if watches_queue(stage):
            rules.append(Noticing(UntilGrowing(), lambda why: self._screen.message(f"Stage {stage.name}: {why}.")))
        return attend(stage, rules, RecordTail(self._journal.folder, index))

    def _prompts(self, index: int, stage: Stage) -> Iterator[Request]:
        """Those of a cold stage are made while the server is not yet: it may be asked for their tokens."""
        self._census.begin_stage()
        requests = self._census.watch(self._requests(stage))
        if stage.cold:
            requests = iter(list(requests))
            self._prepared()
            if (ready_s := self.crew.cooling.cool(stage)) is not None:
                self._journal.restarted(index, ready_s)
        return requests

    def _load(
        self, index: int, stage: Stage, requests: Iterator[Request], work: Path, attended: Attended | None
    ) -> StageResult:
        driver, leaving = self._driver(index, stage, work), Leaving(stage, self._screen)
        self._journal.begin(index)
        try:
            return driver.run(
                requests,
                lambda: self._begun(index, stage),
                lambda report, ns: self._progress(stage, report, ns, attended) or leaving.order(report),
            )
        except WithstandError as e:
            self._journal.stage_failed(index, str(e))
            raise

    def _count_texts(self, index: int, stage: Stage, work: Path) -> None:
        """The load is over: nobody is disturbed."""
        tokenizer = self._tokenizer_of(stage)
        try:
            counts = counted_texts(work, tokenizer)
        except TargetError as e:
            self._screen.message(f"Stage {stage.name}: the answers' tokens were not counted by their text: {e}")
            return
        if counts:
            self._journal.count_texts(index, tokenizer, counts)

    def _requests(self, stage: Stage) -> Iterator[Request]:
        assert stage.workload is not None
        tokenizer = self._tokenizer_of(stage)
        tokenizer.begin()
        seed = seed_of(self._plan, stage.name)
        return workload.requests(workload.open_dataset(stage.workload, tokenizer, seed), stage, seed)

    def _tokenizer_of(self, stage: Stage) -> AloudTokenizer:
        assert stage.workload is not None
        return self._tokenizer(stage.workload.tokenizer)

    def _tokenizer(self, name: str) -> AloudTokenizer:
        if name not in self._tokenizers:
            endpoint = self._endpoint
            engine = engine_tokenizer(endpoint.asker, endpoint.address, endpoint.model, self._patience)
            self._tokenizers[name] = AloudTokenizer(workload.open_tokenizer(name, engine), self._screen)
            self._journal.tokenizer(self._tokenizers[name])
        return self._tokenizers[name]

    def _driver(self, index: int, stage: Stage, work: Path) -> StageDriver:
        job = self._endpoint.job(self._plan, stage=index, epoch_ns=self._journal.epoch_ns)
        duration_ns = int(stage.duration_s * 1e9) if stage.duration_s is not None else None
        share = share_wanted(stage, self._tokenizer_of(stage))
        preconnect = preconnect_of(self._plan, stage)
        drain_ns = min(b.drain_ns(stage, self._plan.drain_s) for b in (self._budget, self._drains))
        job = msgspec.structs.replace(
            job, duration_ns=duration_ns, drain_ns=drain_ns, text_share=share, preconnect=preconnect
        )
        stripes = self.crew.stripes(self._plan, stage)
        records, muster = self._journal.folder.worker_file, self.crew.hosts.muster
        return StageDriver(job, stripes, work, records, muster, self._patience)

    def _prepared(self) -> None:
        for tokenizer in self._tokenizers.values():
            tokenizer.end()

    def _begun(self, index: int, stage: Stage) -> None:
        """The workers are about to send."""
        self._prepared()
        entries = [(i, e) for i, e in self._journal.manifest.in_order() if e.state is not RunState.SUPERSEDED]
        measured = [i for i, e in entries if not e.stage.warmup]
        place = None if stage.warmup else measured.index(index) + 1
        more = to_come(self._plan, self._journal.known_stages())
        self._screen.stage_started(stage.name, stage.phase, place, len(measured) + more)

    def _progress(self, stage: Stage, report: Report, since_start_ns: int, attended: Attended | None) -> Order | None:
        self._screen.stage_progress(
            StageProgress(
                elapsed_s=since_start_ns / 1e9,
                planned=stage.num_prompts,
                duration_s=stage.duration_s,
                sent=report.sent,
                done=report.done,
                failed=report.failed,
                in_flight=report.in_flight,
                output_tokens=report.output_tokens,
                silent_s=report.silent_ns / 1e9,
            )
        )
        self.crew.mind()
        return attended.order(report, since_start_ns) if attended else None

    def _tell(self, index: int, stage: Stage) -> None:
        """A warm-up is checked, a measured stage is shown; the report on disk is up to date after each."""
        if stage.warmup:
            check_warmup_of(self._endpoint, list(self._journal.folder.records(index)))
        else:
            self._screen.stage_finished(self._journal.summarize(index))
            self._journal.report()
