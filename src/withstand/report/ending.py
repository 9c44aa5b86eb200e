"""Why stages ended before their limit, why others were not run, and notes: a line each."""

from collections.abc import Iterator

from withstand.metrics.summary import Summary
from withstand.report.numbers import counted, seconds
from withstand.report.standing import few


def ending_lines(summary: Summary) -> Iterator[str]:
    """``ended early (rate-8): more than 20 % of the requests fail (9 of the first 11 did); after 3.1 s``."""
    for stage in summary.stages:
        whose = f" ({stage.name})" if len(summary.stages) > 1 else ""
        if stage.ended_by:
            after = f"; after {seconds(stage.duration_s)}" if stage.duration_s is not None else ""
            yield f"ended early{whose}: {stage.ended_by}{after}"
        if stage.cut:
            asked = counted(stage.attempted, "request")
            yield f"cut by us{whose}: {stage.cut:,} of {asked}; the server did not fail them"
        if stage.cut_short:
            yield f"cut short{whose}: {stage.cut_short}"
    told = [one for one in summary.left_out if summary.stages or not one.no_arrival]  # else it is what opens the report
    for why, empty in dict.fromkeys((one.why, one.no_arrival) for one in told):
        names = [one.stage for one in told if one.why == why]
        what = "not measured" if empty else "left out"
        yield f"{what} ({', '.join(few(names))}): {why if len(names) == 1 else _of_each(why)}"
    yield from summary.notes


def _of_each(why: str) -> str:
    return f"each {why.removeprefix('it ')}" if why.startswith("it ") else why
