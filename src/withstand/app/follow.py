"""A run as it looks now, read off its folder while another process, or this one, writes it.

A look takes some milliseconds, however much was written: what there is no time to read is only counted. Who begins to
look in the middle of a large stage sees its last records at once; those before are counted little by little.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from withstand import clock
from withstand.app.estimate import estimated, to_come
from withstand.app.limit import limit_in
from withstand.app.records_now import RecordsNow
from withstand.app.samples_now import SamplesNow
from withstand.errors import UsageError, WithstandError
from withstand.metrics.live import BracketNow, Current, LiveStage, Snapshot, StageNow, Told, remaining_s, share_done
from withstand.runs import Manifest, RunFolder, RunState, StageEntry, epoch_ns, still_runs
from withstand.spec import Stage, rate_rps_of

_NS_PER_S = 1e9
_MANIFEST_BYTES_MAX = 1 << 25
_FIRST_LOOK = 50
"""So many times as long as another, unless by the process that runs: there is the stage's past to read."""
KILLED, UNREADABLE = "killed", "unreadable"


def follow(folder: Path, every_s: float = 0.5) -> Iterator[Snapshot]:
    """A snapshot now, and further ones until the run is over; the last one says how it ended."""
    follower = Follower(folder)
    while True:
        snapshot = follower.look()
        yield snapshot
        if snapshot.state != RunState.RUNNING.value:
            return
        clock.sleep_s(every_s)


class Follower:
    """One run folder. Nothing that stands in it makes a look fail."""

    def __init__(self, folder: Path, look_s: float = 0.02) -> None:
        self._path = folder
        self._look_ns = int(look_s * _NS_PER_S)
        """A look reads records for so long, a first one for longer, and is over soon after."""
        self._seen: tuple[int, int, int] | None = None
        self._folder: RunFolder | None = None
        self._epoch_ns = 0
        self._began_ns = 0
        self._stages: list[StageNow] = []
        self._limit: BracketNow | None = None
        self._later_s: float | None = None
        self._live: LiveStage | None = None
        self._told: Told | None = None
        self._records: RecordsNow | None = None
        self._samples = SamplesNow(folder)

    def tell(self, told: Told) -> None:
        """By the process that runs: what it knows of the stage that goes on."""
        self._told = told

    def look(self) -> Snapshot:
        """How it stands."""
        try:
            return self._look()
        except WithstandError as e:
            return Snapshot(state=UNREADABLE, error=str(e))
        except (ArithmeticError, LookupError, ValueError):  # a stranger's folder may say anything
            return Snapshot(state=UNREADABLE, error=f"{self._path} holds numbers that no run has.")

    def _look(self) -> Snapshot:
        began_ns = clock.now_ns()
        manifest = self._manifest()
        now_ns = began_ns - self._epoch_ns
        look_ns = self._look_ns * (1 if self._records or self._told else _FIRST_LOOK)
        is_dead = _is_dead(manifest)
        if is_dead:  # it may have told its end since we read
            manifest = self._manifest()
        self._begin_stage(manifest, now_ns)
        if self._records and self._live:
            self._records.read(self._live, now_ns, began_ns + look_ns)
            if self._told:
                self._live.tell(self._told)
        return self._snapshot(manifest, now_ns, is_dead=is_dead)

    def _manifest(self) -> Manifest:
        """Read again only if it was written again."""
        path = self._path / "run.json"
        try:
            status = path.stat()
        except OSError:
            status = None
        if status is None or not path.is_file() or status.st_size > _MANIFEST_BYTES_MAX:
            raise UsageError(f"{self._path} holds no run that can be read.")
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._folder is None or self._seen != stamp:
            self._seen = stamp
            self._folder = RunFolder.open(self._path)
            self._epoch_ns = epoch_ns(self._folder.manifest)
            self._began_ns = clock.now_ns() - int(clock.wall_s() * _NS_PER_S) + status.st_mtime_ns - self._epoch_ns
            self._take_in(self._folder.manifest)
        return self._folder.manifest

    def _take_in(self, manifest: Manifest) -> None:
        entries = [(i, e) for i, e in manifest.in_order() if e.state is not RunState.SUPERSEDED]
        self._stages = [_stage_now(index, entry) for index, entry in entries]
        self._limit = _bracket(manifest)
        self._later_s = _later_s(manifest)

    def _begin_stage(self, manifest: Manifest, now_ns: int) -> None:
        """A stage is looked at from its beginning, but for the one that went on when the first look came."""
        running = [i for i, e in enumerate(manifest.stages) if e.state is RunState.RUNNING]
        if not running:
            self._live = None
        elif self._live is None or self._live.index != running[-1]:
            first = self._records is None
            self._records = self._records or RecordsNow(self._folder or RunFolder(self._path, manifest))
            since = "view" if first and self._records.is_late else "stage"
            stage = manifest.stages[running[-1]].stage
            elapsed_ns = int(self._told.elapsed_s * _NS_PER_S) if self._told else now_ns - self._began_ns
            started_ns = now_ns - max(0, elapsed_ns)
            self._live = LiveStage(running[-1], stage, manifest.plan.goodput, started_ns, since=since)

    def _snapshot(self, manifest: Manifest, now_ns: int, *, is_dead: bool) -> Snapshot:
        current = self._live.current(now_ns) if self._live else None
        stages = [
            _with(stage, current) if current and current.index == stage.index else stage for stage in self._stages
        ]
        return Snapshot(
            state=KILLED if is_dead and manifest.state is RunState.RUNNING else manifest.state.value,
            target=manifest.target,
            model=manifest.model,
            elapsed_s=max(0.0, self._measured_ns(manifest, now_ns, is_dead=is_dead) / _NS_PER_S),
            left_s=_left_s(self._later_s, stages),
            stages=tuple(stages),
            to_come=to_come(manifest.plan, [e.stage for e in manifest.stages]),
            current=current,
            server=self._samples.look(),
            limit=self._limit,
            error=manifest.error,
        )

    def _measured_ns(self, manifest: Manifest, now_ns: int, *, is_dead: bool) -> int:
        """As a budget is charged: what lay between two sittings is not counted."""
        goes_on = self._live is not None and not is_dead
        return manifest.spent_ns + (now_ns - self._began_ns if goes_on else 0)


def _is_dead(manifest: Manifest) -> bool:
    """Whether nobody goes on with what is said to be going on."""
    return manifest.state is RunState.RUNNING and not still_runs(manifest.writer)


def _stage_now(index: int, entry: StageEntry) -> StageNow:
    stage, is_over = entry.stage, entry.ended_ns is not None and entry.started_ns is not None
    return StageNow(
        index=index,
        name=entry.name,
        phase=stage.phase,
        state=entry.state.value,
        warmup=stage.warmup,
        arrivals=str(stage.arrivals.__struct_config__.tag),
        rate_asked=rate_rps_of(stage.arrivals),
        max_concurrency=stage.max_concurrency,
        planned=stage.num_prompts,
        duration_s=stage.duration_s,
        elapsed_s=((entry.ended_ns or 0) - (entry.started_ns or 0)) / _NS_PER_S if is_over else None,
        done=sum(h.finished for h in entry.health) if entry.health else None,
        share=1.0 if entry.state is RunState.DONE else None,
        error=entry.error,
    )


def _with(stage: StageNow, current: Current) -> StageNow:
    share = share_done(
        done=current.done, planned=stage.planned, elapsed_s=current.elapsed_s, duration_s=stage.duration_s
    )
    return msgspec.structs.replace(stage, elapsed_s=current.elapsed_s, done=current.done, share=share)


def _later_s(manifest: Manifest) -> float | None:
    """Of the stages that are planned; None where one of them does not tell, or it would take long to find out."""
    planned = [e.stage for e in manifest.stages if e.state is RunState.PLANNED]
    if manifest.plan.find_limit or manifest.state is not RunState.RUNNING or any(map(_is_hard, planned)):
        return None
    later = estimated(manifest.plan, planned, [e.stage for e in manifest.stages])
    return None if later.unknown else later.known_s


def _is_hard(stage: Stage) -> bool:
    """Its end can only be found request by request."""
    return rate_rps_of(stage.arrivals) is None and stage.duration_s is None


def _left_s(later_s: float | None, stages: list[StageNow]) -> float | None:
    """With the rest of the stage that goes on."""
    rests = [remaining_s(s.elapsed_s or 0.0, s.share) for s in stages if s.state == RunState.RUNNING.value]
    known = [rest for rest in rests if rest is not None]
    return None if later_s is None or len(known) < len(rests) else later_s + sum(known)


def _bracket(manifest: Manifest) -> BracketNow | None:
    """What is known by now of a limit that is looked for."""
    limit = limit_in(manifest)
    if limit is None:
        return None
    return BracketNow(limit.axis.value, limit.interval.low, limit.interval.high, len(limit.probes))
