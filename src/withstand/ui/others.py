"""What other tools have written, as lines of the list: imports that were kept, and result files as they lie there."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from withstand import clock
from withstand.errors import FormatError
from withstand.interop.read import read_text
from withstand.interop.shape import ImportedRun
from withstand.interop.summary import summary_of
from withstand.metrics.rates import telling
from withstand.metrics.summary import StageSummary, Summary
from withstand.runs import imported_of
from withstand.ui.entry import Detail, DoubtLine, Entry, StageLine, State, at_best_rate, best, doubt_lines, shown
from withstand.ui.reach import read
from withstand.ui.walk import FILE_BYTES_MAX, Place


def import_at(place: Place, root: Path, about: Entry) -> Detail:
    """A kept import, without its records.

    Raises:
        OutOfReachError: it may not be read.
        StorageError: it is damaged, or of a later version.
    """
    return _detail(imported_of(place.path, read(place.path / "imported.json", root)), about)


def file_at(place: Place, root: Path, about: Entry) -> Detail | None:
    """A result file; None where it holds no result, as most files do not.

    Raises:
        OutOfReachError: it may not be read.
    """
    text = read(place.path, root, FILE_BYTES_MAX).decode("utf-8", "replace")
    try:
        return _detail(read_text(text, place.path.name).runs, about)
    except FormatError:
        return None


def _detail(runs: Sequence[ImportedRun], about: Entry) -> Detail:
    summary = summary_of(runs)
    stages = tuple(map(_line, summary.stages))
    doubts = _doubts(summary)
    dates = [clock.wall_of(run.conditions.date or "") for run in runs]
    entry = msgspec.structs.replace(
        about,
        state=State.NOTHING if stages and all(s.attempted and not s.completed for s in summary.stages) else State.DONE,
        at_s=best(dates) or about.at_s,
        tool=shown(_common([run.source.tool for run in runs])),
        model=shown(_common([run.conditions.model for run in runs])),
        target=shown(_common([run.conditions.engine or run.conditions.backend for run in runs])),
        stages=len(runs),
        stages_done=len(runs),
        requests=sum(s.attempted for s in summary.stages) if summary.stages else None,
        failed=sum(s.failed for s in summary.stages) if summary.stages else None,
        request_rate=best([s.request_throughput for s in telling(summary.stages)]),
        token_rate=best([s.output_throughput for s in telling(summary.stages)]),
        ttft_p95_ms=at_best_rate(
            (s.request_throughput, s.ttft.percentiles.get("p95")) for s in telling(summary.stages)
        ),
        doubts=len({d.kind for d in doubts}),
        blocking=len({d.kind for d in doubts if d.blocking}),
    )
    return Detail(entry=entry, stages=stages, doubts=doubts)


def _common(values: Sequence[str | None]) -> str | None:
    """What all have."""
    return values[0] if len(set(values)) == 1 else None


def _line(stage: StageSummary) -> StageLine:
    return StageLine(
        name=shown(stage.name) or "",
        requests=stage.attempted,
        failed=stage.failed,
        request_rate=stage.request_throughput,
        token_rate=stage.output_throughput,
        ttft_p50_ms=stage.ttft.percentiles.get("p50"),
        ttft_p95_ms=stage.ttft.percentiles.get("p95"),
        tpot_p50_ms=stage.tpot.percentiles.get("p50"),
        tpot_p95_ms=stage.tpot.percentiles.get("p95"),
        e2el_p95_ms=stage.e2el.percentiles.get("p95"),
    )


def _doubts(summary: Summary) -> tuple[DoubtLine, ...]:
    of_all = [(None, doubt) for doubt in summary.doubts]
    of_stages = [(stage.name, doubt) for stage in summary.stages for doubt in stage.doubts]
    return doubt_lines([*of_all, *of_stages])
