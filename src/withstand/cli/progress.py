"""How a stage's progress reads, in words and as a share. Pure; where it is drawn is the screen's business."""

from withstand.app.screen import StageProgress
from withstand.metrics import live

_SILENT_S = 3.0
"""A busy machine may delay a report, which is due five times a second, but hardly for so long."""


def share_done(progress: StageProgress) -> float | None:
    """Between 0 and 1; None where neither requests nor time end the stage."""
    return live.share_done(
        done=progress.done,
        planned=progress.planned,
        elapsed_s=progress.elapsed_s,
        duration_s=progress.duration_s,
    )


def remaining_s(progress: StageProgress) -> float | None:
    """At the pace so far; None before there is one."""
    return live.remaining_s(progress.elapsed_s, share_done(progress))


def counts(progress: StageProgress) -> str:
    """``120/500 done, 2 failed, 8 in flight, 1,234 tok/s``; and that a worker has stopped reporting."""
    planned = f"/{progress.planned:,}" if progress.planned else ""
    failed = f", {progress.failed:,} failed" if progress.failed else ""
    tokens = progress.output_tokens / progress.elapsed_s if progress.elapsed_s > 0 else 0.0
    silent = f", a worker silent for {progress.silent_s:.0f} s" if progress.silent_s > _SILENT_S else ""
    return f"{progress.done:,}{planned} done{failed}, {progress.in_flight:,} in flight, {tokens:,.0f} tok/s{silent}"


def seconds_left(progress: StageProgress) -> str:
    """``12 s left``; nothing where it cannot be said."""
    left_s = remaining_s(progress)
    return "" if left_s is None else f"{left_s:.0f} s left"
