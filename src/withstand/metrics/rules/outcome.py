"""Doubts about what became of the requests."""

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rounding import counted, percent
from withstand.metrics.rules.case import Case, number
from withstand.record import Status
from withstand.spec import Inf

_FAILED_SHARE_MAX = 0.1
"""Of the requests, by failure or by a limiter: with so many unknown no p90 is known."""
_ERROR_HEADS_MIN = 3
_ERROR_HEADS_SHARE = 0.05


def requests_failed(case: Case) -> Doubt | None:
    """Not all succeeded; those that a limiter or our own stop ended have doubts of their own."""
    ours = (Status.NOT_SENT,) if case.context.stopped_early or case.context.ended_by else ()
    apart = {Status.OK, Status.LIMITED, Status.CANCELLED, *ours}
    failed = {status: n for status, n in case.summary.statuses.items() if status not in apart}
    if not failed:
        return None
    kinds = ", ".join(f"{n:,} {status}" for status, n in sorted(failed.items(), key=lambda kind: -kind[1]))
    count, asked = sum(failed.values()), case.summary.attempted
    return Doubt(
        DoubtKind.REQUESTS_FAILED,
        f"{count:,} of {counted(asked, 'request')} failed ({percent(count, asked)}): {kinds}."
        f"{_commonest(case)}{_paused(case)} Times and throughputs are those of the good ones only.",
        "Find the cause in the records' errors first: numbers of different survivors cannot be compared.",
        blocking=count >= _FAILED_SHARE_MAX * asked,
        brief=f"{count:,} of {asked:,}",
    )


def _paused(case: Case) -> str:
    """A closed loop asks a server from which no byte comes more slowly: the number of failures is then our doing."""
    stage = case.context.stage
    unheard = sum(case.summary.statuses.get(status, 0) for status in (Status.REFUSED, Status.RESET, Status.TLS_ERROR))
    if not unheard or not isinstance(stage.arrivals, Inf) or stage.max_concurrency is None:
        return ""
    return " After one without a byte its slot pauses, 10 ms and up to 1 s: they are no rate."


def _commonest(case: Case) -> str:
    if not case.summary.errors:
        return ""
    text, count = max(case.summary.errors.items(), key=lambda item: item[1])
    return f" Most often ({count:,}): “{text}”."


def rate_limited(case: Case) -> Doubt | None:
    """A limiter spoke, not the engine."""
    limited, asked = case.summary.statuses.get(Status.LIMITED, 0), case.summary.attempted
    if not limited:
        return None
    return Doubt(
        DoubtKind.RATE_LIMITED,
        f"{limited:,} of {counted(asked, 'request')} ({percent(limited, asked)}) were answered 429: "
        "a limiter answered, not the engine, so this says nothing of what the engine can do.",
        "Raise the limit of the gateway or of the account, or stay below it.",
        blocking=limited >= _FAILED_SHARE_MAX * asked,
        brief=f"{limited:,} of {asked:,}",
    )


def error_text(case: Case) -> Doubt | None:
    """An error, played as the content of a good answer."""
    heads, answers = case.evidence.error_heads, case.summary.completed
    count = heads.total()
    if count < max(_ERROR_HEADS_MIN, _ERROR_HEADS_SHARE * answers):
        return None
    head, same = max(heads.items(), key=lambda item: (item[1], item[0]))
    if 2 * same < count:
        return None
    return Doubt(
        DoubtKind.ERROR_TEXT,
        f"{count:,} of {answers:,} good answers ({percent(count, answers)}) read like an error, "
        f"{same:,} of them alike: “{head}”. They were streamed with HTTP 200, and count as successes here.",
        "Read some answers. If a hop turns errors into content, its numbers are those of the error text.",
    )


def records_missing(case: Case) -> Doubt | None:
    """The folder does not tell any more of all that was measured."""
    health, damaged = case.context.health, case.context.damaged_lines
    lost = _lost(case) if health else damaged
    if not lost:
        return None
    ended = sum(h.finished for h in health) if health else case.summary.attempted + damaged
    by_account = (
        f"{lost:,} of {counted(ended, 'request')} that ended ({percent(lost, ended)}) have no record that can be read: "
        "lines are damaged, or gone from the folder. The numbers are those of the others."
    )
    by_lines = (
        f"{counted(lost, 'line')} of the run's records cannot be read: damaged, or cut off with all that stood behind. "
        "How many requests they told of is not known."
    )
    return Doubt(
        DoubtKind.RECORDS_MISSING,
        by_account if health else by_lines,
        "Take the folder from where it is whole, or run the stage again.",
        blocking=lost >= _FAILED_SHARE_MAX * ended,
    )


def _lost(case: Case) -> int:
    """By the workers' own account."""
    read = case.summary.attempted - case.summary.statuses.get(Status.NOT_SENT, 0)
    return max(0, sum(h.finished for h in case.context.health) - read)


def fewer_than_asked(case: Case) -> Doubt | None:
    """Prompts that nobody took up, although nothing told us to stop."""
    stage, taken = case.context.stage, case.evidence.first_turns + _lost(case)
    if stage.num_prompts is None or stage.duration_s is not None:
        return None
    if case.context.stopped_early or case.context.ended_by:
        return None
    missing = stage.num_prompts - taken
    if missing <= 0:
        return None
    return Doubt(
        DoubtKind.FEWER_THAN_ASKED,
        f"{stage.num_prompts:,} prompts were asked for and {taken:,} were taken up: "
        f"{missing:,} are missing without a record.",
        "Run the stage again; if it stays so, look for a worker that ended early.",
        blocking=missing >= _FAILED_SHARE_MAX * stage.num_prompts,
    )


def stopped_early(case: Case) -> Doubt | None:
    """The stage is not whole."""
    if not case.context.stopped_early:
        return None
    planned = case.context.stage.num_prompts
    of = f" of {planned:,} planned" if planned is not None and case.context.stage.duration_s is None else ""
    lasted = f" in {number(case.summary.duration_s)} s" if case.summary.duration_s is not None else ""
    return Doubt(
        DoubtKind.STOPPED_EARLY,
        f"The stage was stopped early: {counted(case.summary.completed, 'answer')}{of}{lasted} "
        "had ended well by then. The load may not have reached its steady state.",
        "Let the stage run to its end, or resume the run.",
        blocking=not case.summary.completed,
    )


def cut_on_the_way(case: Case) -> Doubt | None:
    """The stage ended as it should, and what ran had to be cut."""
    cut, asked = case.summary.statuses.get(Status.CANCELLED, 0), case.summary.attempted
    if case.context.stopped_early or not cut:
        return None
    told = f"{cut:,} of {counted(asked, 'request')} were cut on their way; {_survivors(case)}."
    why = f"The stage ended early ({case.context.ended_by})" if case.context.ended_by else "The stage was over"
    meant = case.context.cut_at_once
    if meant:
        told = f"{why}, and what ran was not waited for: {told}"
        remedy = "Take from it what it ended by, and no time."
    else:
        told = f"{why}, and the time to wait for its last answers too: {told}"
        remedy = "Give the last answers longer (--set drain_s=120, or a larger budget), or ask for less."
    return Doubt(
        DoubtKind.STOPPED_EARLY,
        told,
        remedy,
        blocking=not meant and cut >= _FAILED_SHARE_MAX * asked,
        brief=f"{cut:,} of {asked:,}",
    )


def _survivors(case: Case) -> str:
    return "the times are those of the quick" if case.summary.completed else "none was answered, so there is no time"


RULES = (
    cut_on_the_way,
    requests_failed,
    rate_limited,
    error_text,
    records_missing,
    fewer_than_asked,
    stopped_early,
)
