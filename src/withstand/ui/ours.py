"""A run folder as a line of the list: from ``run.json`` and ``summary.json``, never from records."""

from pathlib import Path
from typing import Annotated

import msgspec

from withstand import clock
from withstand.app.limit import limit_in
from withstand.app.report import wanted, why_partial
from withstand.metrics.rates import has_limits, share_good, telling
from withstand.metrics.summary import cut_by_us
from withstand.report.limit import sentence
from withstand.report.numbers import counted
from withstand.runs import Manifest, RunState, StageEntry, manifest_of, still_runs
from withstand.ui.entry import Detail, DoubtLine, Entry, Kind, StageLine, State, at_best_rate, best, doubt_lines, shown
from withstand.ui.reach import OutOfReachError, read
from withstand.ui.walk import Place

Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]


class _Doubt(msgspec.Struct, frozen=True):
    kind: str
    sentence: str
    remedy: str = ""
    blocking: bool = False


class _Stage(msgspec.Struct, frozen=True):
    """What is shown of a stage of ``summary.json``."""

    name: str
    attempted: Count = 0
    completed: Count | None = None
    failed: Count = 0
    statuses: dict[str, Count] = {}
    duration: float | None = None
    request_throughput: float | None = None
    request_goodput: float | None = None
    output_throughput: float | None = None
    p50_ttft_ms: float | None = None
    p95_ttft_ms: float | None = None
    p50_tpot_ms: float | None = None
    p95_tpot_ms: float | None = None
    p95_e2el_ms: float | None = None
    doubts: tuple[_Doubt, ...] = ()

    @property
    def cut(self) -> int:
        """Not answered, by our own doing."""
        return cut_by_us(self.failed, self.statuses)

    @property
    def at_fault(self) -> int:
        """The other ones that failed."""
        return self.failed - self.cut


class _Summary(msgspec.Struct, frozen=True):
    """What is shown of ``summary.json``."""

    stages: tuple[_Stage, ...] = ()
    doubts: tuple[_Doubt, ...] = ()

    @property
    def silent(self) -> frozenset[str]:
        """Stages that have no good answer."""
        return frozenset(s.name for s in self.stages if s.attempted and s.completed == 0)


def manifest_at(place: Place, root: Path) -> Manifest:
    """``run.json``.

    Raises:
        OutOfReachError: it may not be read.
        WithstandError: it is another tool's, damaged, or of a later version.
    """
    return manifest_of(place.path, read(place.path / "run.json", root))


def entry_of(place: Place, root: Path, manifest: Manifest, about: Entry) -> Entry:
    """A run's line. ``about`` has what is known of every place."""
    summary, why = _summary(place, root)
    return _entry(manifest, summary, why, about)


def detail_of(place: Place, root: Path, about: Entry) -> Detail:
    """All that is behind it.

    Raises:
        as ``manifest_at``.
    """
    manifest = manifest_at(place, root)
    summary, why = _summary(place, root)
    return Detail(
        entry=_entry(manifest, summary, why, about), stages=_stages(manifest, summary), doubts=_doubts(summary)
    )


def _entry(manifest: Manifest, summary: _Summary, why: str | None, about: Entry) -> Entry:
    stages, state = summary.stages, _state(manifest, summary)
    planned = [e for e in wanted(manifest) if not e.stage.warmup]
    ended = [e.name for e in planned if e.state is RunState.DONE and not e.had_no_arrival]
    unheard = sum(name in summary.silent for name in ended)
    doubts = [*summary.doubts, *(doubt for stage in stages for doubt in stage.doubts)]
    return msgspec.structs.replace(
        about,
        kind=Kind.SEARCH if manifest.plan.find_limit else Kind.RUN,
        state=state,
        why=shown(
            why
            or (
                None
                if state is State.RUNNING
                else why_partial(manifest, summary.silent) or _no_answer(unheard) or _open(manifest)
            )
        ),
        at_s=clock.wall_of(manifest.created_utc) or about.at_s,
        tool="withstand",
        target=shown(manifest.target),
        model=shown(manifest.model),
        stages=len(planned),
        stages_done=len(ended) - unheard,
        requests=sum(s.attempted for s in stages) if stages else None,
        failed=sum(s.at_fault for s in stages) if stages else None,
        cut=sum(s.cut for s in stages) if stages else None,
        request_rate=best([s.request_throughput for s in telling(stages)]),
        token_rate=best([s.output_throughput for s in telling(stages)]),
        ttft_p95_ms=at_best_rate((s.request_throughput, s.p95_ttft_ms) for s in telling(stages)),
        doubts=len({d.kind for d in doubts}) if stages else None,
        blocking=len({d.kind for d in doubts if d.blocking}),
        slo_kept=_kept(manifest, summary),
        limit=_limit(manifest),
    )


def _summary(place: Place, root: Path) -> tuple[_Summary, str | None]:
    """What it came to so far, and why that cannot be told."""
    if place.stamps[1] is None:
        return _Summary(), None
    try:
        return msgspec.json.decode(read(place.path / "summary.json", root), type=_Summary), None
    except OutOfReachError as e:
        return _Summary(), str(e)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as e:
        return _Summary(), f"summary.json is damaged: {e}."


def _no_answer(stages: int) -> str | None:
    return f"{counted(stages, 'stage')} ended without a good answer." if stages else None


def _open(manifest: Manifest) -> str | None:
    """Of a search that has ended; what it has found stands beside it."""
    limit = limit_in(manifest)
    if limit is None or limit.is_answered or not limit.is_known:
        return None
    return "Partial: the search ended before both ends of the limit were known."


def _state(manifest: Manifest, summary: _Summary) -> State:
    if manifest.state is RunState.RUNNING and still_runs(manifest.writer):
        return State.RUNNING
    if manifest.state is RunState.FAILED:
        return State.FAILED
    if why_partial(manifest):
        return State.PARTIAL
    if manifest.plan.find_limit:
        limit = limit_in(manifest)
        known = limit is not None and limit.is_known
        return (State.DONE if limit and limit.is_answered else State.PARTIAL) if known else State.NOTHING
    if not summary.silent:
        return State.DONE
    return State.PARTIAL if len(summary.silent) < len(summary.stages) else State.NOTHING


def _stages(manifest: Manifest, summary: _Summary) -> tuple[StageLine, ...]:
    """As the plan has them; those that have come to something with their numbers."""
    by_name = {stage.name: stage for stage in summary.stages}
    entries = [e for _, e in manifest.in_order() if e.state is not RunState.SUPERSEDED]
    return tuple(_line(e.name, _stage_state(e, summary), by_name.get(e.name)) for e in entries)


def _stage_state(entry: StageEntry, summary: _Summary) -> str:
    """A stage that went to its end and came to nothing is not shown as if all were well."""
    if entry.had_no_arrival:
        return "no_arrival"
    return "no_good_answer" if entry.state is RunState.DONE and entry.name in summary.silent else entry.state.value


def _line(name: str, state: str, stage: _Stage | None) -> StageLine:
    if stage is None:
        return StageLine(name=shown(name) or "", state=state)
    return StageLine(
        name=shown(name) or "",
        state=state,
        requests=stage.attempted,
        failed=stage.at_fault,
        cut=stage.cut,
        request_rate=stage.request_throughput,
        token_rate=stage.output_throughput,
        ttft_p50_ms=stage.p50_ttft_ms,
        ttft_p95_ms=stage.p95_ttft_ms,
        tpot_p50_ms=stage.p50_tpot_ms,
        tpot_p95_ms=stage.p95_tpot_ms,
        e2el_p95_ms=stage.p95_e2el_ms,
    )


def _doubts(summary: _Summary) -> tuple[DoubtLine, ...]:
    of_all = [(None, doubt) for doubt in summary.doubts]
    of_stages = [(stage.name, doubt) for stage in summary.stages for doubt in stage.doubts]
    return doubt_lines([*of_all, *of_stages])


def _kept(manifest: Manifest, summary: _Summary) -> bool | None:
    """Whether every stage kept the SLO; None where there is none."""
    slo = manifest.plan.goodput
    if not has_limits(slo) or not summary.stages:
        return None
    return all(share_good(s.request_goodput, s.duration, s.attempted) >= slo.share for s in summary.stages)


def _limit(manifest: Manifest) -> str | None:
    limit = limit_in(manifest)
    return shown(sentence(limit)) if limit else None
