"""Doubts about what became of the requests."""

from collections import Counter
from collections.abc import Collection

from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rounding import counted, percent
from withstand.metrics.rules.case import Case, number
from withstand.record import Status

_LOST_SHARE_MAX = 0.1
"""Of the requests, whatever became of them: with so many unknown no p90 is known."""
_FAILED, _LIMITED, _CUT = "failed", "answered 429", "cut on their way"
_NO_RECORD, _NOT_TAKEN_UP = "without a record", "never taken up"
_ERROR_HEADS_MIN = 3
_ERROR_HEADS_SHARE = 0.05


def requests_failed(case: Case) -> Doubt | None:
    """Not all succeeded; those that a limiter or our own stop ended have doubts of their own."""
    failed = _failed(case)
    if not failed:
        return None
    kinds = ", ".join(f"{n:,} {status}" for status, n in sorted(failed.items(), key=lambda kind: -kind[1]))
    count, asked = sum(failed.values()), case.summary.attempted
    blocking, together = _weight(case, _FAILED, count, asked)
    return Doubt(
        DoubtKind.REQUESTS_FAILED,
        f"{count:,} of {counted(asked, 'request')} failed ({percent(count, asked)}): {kinds}."
        f"{_commonest(case, failed)}{_paused(case)}{together} Times and throughputs are those of the good ones only.",
        "Find the cause in the records' errors first: numbers of different survivors cannot be compared.",
        blocking=blocking,
        brief=f"{count:,} of {asked:,}",
    )


def _weight(case: Case, part: str, count: int, of: int) -> tuple[bool, str]:
    """Whether a part of what is unknown blocks: by itself, or as the largest where all of it is too much."""
    if count >= _LOST_SHARE_MAX * of:
        return True, ""
    parts = _unknown(case)
    total, asked = sum(parts.values()), case.summary.attempted + parts[_NO_RECORD] + parts[_NOT_TAKEN_UP]
    if total < _LOST_SHARE_MAX * asked or part != max(parts, key=lambda name: parts[name]):
        return False, ""
    told = ", ".join(f"{n:,} {name}" for name, n in parts.items() if n)
    return True, f" In all {total:,} of {asked:,} ({percent(total, asked)}) are unknown: {told}."


def _unknown(case: Case) -> dict[str, int]:
    """The requests of which nobody knows how they would have fared; what we stopped on purpose is not among them."""
    statuses, context = case.summary.statuses, case.context
    meant = context.stopped_early or context.cut_at_once
    return {
        _FAILED: sum(_failed(case).values()),
        _LIMITED: statuses.get(Status.LIMITED, 0),
        _CUT: 0 if meant else statuses.get(Status.CANCELLED, 0),
        _NO_RECORD: _lost(case) if context.health else 0,
        _NOT_TAKEN_UP: _missing(case),
    }


def _paused(case: Case) -> str:
    """A closed loop asks a server from which no byte comes more slowly: the number of failures is then our doing."""
    unheard = sum(case.summary.statuses.get(status, 0) for status in (Status.REFUSED, Status.RESET, Status.TLS_ERROR))
    if not unheard or not case.context.stage.is_closed:
        return ""
    return " After one without a byte its slot pauses, 10 ms and up to 1 s: they are no rate."


def _failed(case: Case) -> dict[str, int]:
    ours = (Status.NOT_SENT,) if case.context.stopped_early or case.context.ended_by else ()
    apart = {Status.OK, Status.LIMITED, Status.CANCELLED, *ours}
    return {status: n for status, n in case.summary.statuses.items() if status not in apart}


def _commonest(case: Case, failed: Collection[str]) -> str:
    """Of the failures that are spoken of, whatever else went wrong."""
    texts: Counter[str] = Counter()
    for status in failed:
        texts.update(case.summary.errors_by_status.get(status, {}))
    if not texts:
        return ""
    text, count = max(texts.items(), key=lambda item: item[1])
    return f" Most often ({count:,}): “{text}”."


def rate_limited(case: Case) -> Doubt | None:
    """A limiter spoke, not the engine."""
    limited, asked = case.summary.statuses.get(Status.LIMITED, 0), case.summary.attempted
    if not limited:
        return None
    blocking, together = _weight(case, _LIMITED, limited, asked)
    return Doubt(
        DoubtKind.RATE_LIMITED,
        f"{limited:,} of {counted(asked, 'request')} ({percent(limited, asked)}) were answered 429: "
        f"a limiter answered, not the engine, so this says nothing of what the engine can do.{together}",
        "Raise the limit of the gateway or of the account, or stay below it.",
        blocking=blocking,
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
    blocking, together = _weight(case, _NO_RECORD, lost, ended)
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
        f"{by_account if health else by_lines}{together}",
        "Take the folder from where it is whole, or run the stage again.",
        blocking=blocking,
    )


def _lost(case: Case) -> int:
    """By the workers' own account."""
    read = case.summary.attempted - case.summary.statuses.get(Status.NOT_SENT, 0)
    return max(0, sum(h.finished for h in case.context.health) - read)


def fewer_than_asked(case: Case) -> Doubt | None:
    """Prompts that nobody took up, although nothing told us to stop."""
    asked, missing = case.context.stage.num_prompts, _missing(case)
    if asked is None or not missing:
        return None
    blocking, together = _weight(case, _NOT_TAKEN_UP, missing, asked)
    return Doubt(
        DoubtKind.FEWER_THAN_ASKED,
        f"{asked:,} prompts were asked for and {asked - missing:,} were taken up: "
        f"{missing:,} are missing without a record.{together}",
        "Run the stage again; if it stays so, look for a worker that ended early.",
        blocking=blocking,
    )


def _missing(case: Case) -> int:
    stage, context = case.context.stage, case.context
    if stage.num_prompts is None or stage.duration_s is not None or context.stopped_early or context.ended_by:
        return 0
    return max(0, stage.num_prompts - case.evidence.first_turns - _lost(case))


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
    blocking, together = (False, "") if meant else _weight(case, _CUT, cut, asked)
    if meant:
        told = f"{why}, and what ran was not waited for: {told}"
        remedy = "Take from it what it ended by, and no time."
    else:
        told = f"{why}, and the time to wait for its last answers too: {told}"
        remedy = "Give the last answers longer (--set drain_s=120, or a larger budget), or ask for less."
    return Doubt(
        DoubtKind.STOPPED_EARLY,
        f"{told}{together}",
        remedy,
        blocking=blocking,
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
