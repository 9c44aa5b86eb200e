"""The page's account of the client itself: its error at each stage, and what each worker had of the machine."""

from collections.abc import Iterable, Sequence

from withstand.metrics.summary import ClientError, Off, StageSummary, Summary
from withstand.record import Health, Spread, Status
from withstand.report.client import run_line
from withstand.report.html_tables import scrollable
from withstand.report.markup import Markup, joined, tag
from withstand.report.numbers import UNKNOWN, at_most, count, number, percent

_ERRORS = ("TTFT", "ITL", "TPOT", "E2EL")
_LOADS = ("sends late", "never sent", "load missing", "gaps unknown")
_WORKERS = (
    "CPU",
    "waited for a core",
    "core taken",
    "stalls",
    "GC",
    "read late",
    "memory",
    "open files",
    "dials / ports",
    "clock set",
)
_ROWS_MAX = 64
"""Of workers; the page shall go through any mail, and summary.json has them all."""
_GIB, _MIB = 1 << 30, 1 << 20


def client(summary: Summary) -> Markup:
    """Everything that the line under the stages rests on; nothing where there is no such line."""
    if run_line(summary) is None:
        return Markup()
    return joined(
        _folded(
            "By how much a number may be wrong at most: p50 / p99, ms; sends late: p50 / p99 / max", _stages(summary)
        ),
        _folded("What each worker had of the machine; read late: p50 / p99 / max, ms", _workers(summary)),
    )


def _folded(title: str, table: Markup) -> Markup:
    return tag("details", tag("summary", title), scrollable(table, title)) if table else Markup()


def _stages(summary: Summary) -> Markup:
    return _table(("Stage", *_ERRORS, *_LOADS), (_stage_row(stage) for stage in summary.stages))


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    body = [tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in cells)) for first, *cells in rows]
    head = tag("thead", tag("tr", *(tag("th", heading, scope="col") for heading in headings)))
    return tag("table", head, tag("tbody", *body)) if body else Markup()


def _stage_row(stage: StageSummary) -> list[str]:
    error, late = stage.client_error or ClientError(), stage.lateness
    return [
        stage.name,
        *(_bounds(off) for off in (error.ttft, error.itl, error.tpot, error.e2el)),
        _numbers(late.percentiles.get("p50"), late.percentiles.get("p99"), late.max),
        count(stage.statuses.get(Status.NOT_SENT, 0)),
        percent(error.rate_share),
        count(stage.unsure_gaps),
    ]


def _bounds(off: Off) -> str:
    return " / ".join(UNKNOWN if ms is None else at_most(ms) for ms in (off.p50, off.p99))


def _numbers(*values_ms: float | None) -> str:
    return " / ".join(number(ms) for ms in values_ms)


def _workers(summary: Summary) -> Markup:
    pairs = [(stage.name, health) for stage in summary.stages for health in stage.health]
    return _table(("Stage, worker", *_WORKERS), (_worker_row(*pair) for pair in pairs[:_ROWS_MAX]))


def _worker_row(stage: str, h: Health) -> list[str]:
    if h.lost:
        return [f"{stage}, {h.worker}: lost", *([UNKNOWN] * len(_WORKERS))]
    return [
        f"{stage}, {h.worker}",
        percent(h.cpu_ns / h.wall_ns if h.wall_ns else None),
        percent(h.runqueue_wait_ns / h.wall_ns if h.runqueue_wait_ns is not None and h.wall_ns else None),
        count(h.forced_switches),
        _pauses(h.loop_stalls, h.loop_stall_ns_max),
        _pauses(h.gc_pauses, h.gc_pause_ns_max),
        _spread(h.lag or h.blind),
        _memory(h.rss_bytes_max),
        f"{count(h.descriptors_max)} of {count(h.descriptor_limit)}",
        f"{count(h.dials)} / {count(h.ports)}",
        count(h.clock_steps),
    ]


def _pauses(n: int | None, longest_ns: int) -> str:
    return f"{count(n)}, {number(longest_ns / 1e6)} ms" if n else count(n)


def _spread(spread: Spread | None) -> str:
    return _numbers(spread.p50_ns / 1e6, spread.p99_ns / 1e6, spread.max_ns / 1e6) if spread else UNKNOWN


def _memory(size: int | None) -> str:
    if size is None:
        return UNKNOWN
    return f"{size / _GIB:.1f} GiB" if size >= _GIB else f"{size / _MIB:.0f} MiB"
