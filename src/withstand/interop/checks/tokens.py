"""Doubts about tokens: claimed against counted, asked against returned, events against tokens, speed for throughput."""

from withstand.interop.checks.words import said, stat, typical
from withstand.interop.shape import ImportedRun
from withstand.interop.values import measured
from withstand.metrics.doubts import Doubt, DoubtKind

_COUNTED_WITHIN = 0.05
_BLOCKING_RATIO = 1.25
_EVENTS_RATIO = 1.5
_LENGTH_WITHIN = 0.05


def claimed_not_counted(run: ImportedRun) -> Doubt | None:
    """The client counted the text again and came to another number."""
    claimed, counted = run.numbers.get("total_output_tokens"), run.numbers.get("retokenized_output_tokens")
    if not claimed or not counted or abs(counted / claimed - 1) <= _COUNTED_WITHIN:
        return None
    ratio = counted / claimed
    asked = measured(run.conditions.labels.get("requested_output_tokens"))
    equal = " The claim equals what was asked for: it is no count at all." if asked == claimed else ""
    return Doubt(
        DoubtKind.CLAIMED_NOT_COUNTED,
        f"Claimed are {said(claimed)} output tokens, counted from the text {said(counted)} "
        f"({ratio:.2f}x).{equal}{_other_throughput(run, counted)}",
        "Compare nothing per token, and no durations, with runs that did other work.",
        blocking=max(ratio, 1 / ratio) >= _BLOCKING_RATIO,
        brief=f"{said(claimed)} claimed, {said(counted)} counted, {ratio:.2f}x",
    )


def _other_throughput(run: ImportedRun, counted: float) -> str:
    duration_s, told = run.numbers.get("duration_s"), run.numbers.get("output_throughput")
    if not duration_s or told is None:
        return ""
    return f" By the text the throughput is {said(counted / duration_s)} tok/s, not {said(told)}."


def events_against_tokens(run: ImportedRun) -> Doubt | None:
    """(E2EL - TTFT) / ITL is the number of gaps of an answer."""
    whole, first, gap = typical_mean(run, "e2el"), typical_mean(run, "ttft"), typical_mean(run, "itl")
    completed, tokens = run.numbers.get("completed"), run.numbers.get("total_output_tokens")
    if whole is None or first is None or not gap or not completed or not tokens:
        return None
    events = completed * ((whole - first) / gap + 1)
    if events <= 0 or max(events / tokens, tokens / events) < _EVENTS_RATIO:
        return None
    return Doubt(
        DoubtKind.EVENTS_AGAINST_TOKENS,
        f"({said(whole)} - {said(first)}) / {said(gap)} ms are {said((whole - first) / gap)} gaps an answer, so about "
        f"{said(round(events))} events in all, but {said(tokens)} tokens are counted.",
        "Several tokens an event are no fault; more events than tokens mean that the tokens are not counted right.",
        brief=f"{said(round(events))} events, {said(tokens)} tokens",
    )


def typical_mean(run: ImportedRun, name: str) -> float | None:
    """The mean only: sums of medians are nothing."""
    return stat(run, name)


def lengths_differ(run: ImportedRun) -> Doubt | None:
    """Asked against returned output, where a random set prescribes it."""
    asked, returned = run.conditions.output_tokens, run.numbers.get("total_output_tokens")
    completed = run.numbers.get("completed")
    is_random = "random" in (run.conditions.dataset or "")
    if not asked or not returned or not completed or not is_random or _lengths_vary(run):
        return None
    mean = returned / completed
    if abs(mean / asked - 1) <= _LENGTH_WITHIN:
        return None
    return Doubt(
        DoubtKind.LENGTHS_DIFFER,
        f"Asked were {said(asked)} output tokens, {said(returned)} / {said(completed)} = {said(mean)} came back.",
        "Ask with ignore_eos, or compare only with runs whose answers are as long.",
        brief=f"{said(mean)} of {said(asked)}",
    )


def _lengths_vary(run: ImportedRun) -> bool:
    """By the range asked for: where it begins, 1 for none; its width, 0 for none, in vLLM since 2025."""
    told = run.conditions.labels.get("random_range_ratio")
    return told is not None and measured(told) not in ((0.0, 1.0) if run.source.tool == "vLLM" else (1.0,))


def speed_no_throughput(run: ImportedRun) -> Doubt | None:
    """Tokens a second of one request, in the place of the server's."""
    speed = typical(run, "speed_per_request")
    if speed is None or run.numbers.get("output_throughput") is not None:
        return None
    cap = run.conditions.max_concurrency
    several = cap is not None and cap > 1
    beside = f" With {said(cap)} at once the server may have made up to {said(cap * speed)}." if cap and several else ""
    return Doubt(
        DoubtKind.SPEED_NO_THROUGHPUT,
        f"{said(speed)} tok/s is the mean speed of single requests, not what the server put out.{beside}",
        "Never set it beside a throughput.",
        blocking=True,
        brief=said(speed),
    )


RULES = (claimed_not_counted, events_against_tokens, lengths_differ, speed_no_throughput)
