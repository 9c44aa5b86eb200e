"""Doubts about what a report does not speak of: a limiter, a cap that was never reached, parts that make no whole.

Each sees one run.
"""

from withstand.interop.checks.words import MS_PER_S, asked, output_tokens_each, said, stat
from withstand.interop.shape import ImportedRun
from withstand.interop.values import measured
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rounding import percent

_ROUND = frozenset({10, 20, 30, 50, 60, 100, 120, 150, 200, 250, 300, 500, 600, 1000, 2000, 3000, 5000, 6000, 10_000})
"""What people write into a limiter's configuration, a minute."""
_MINUTE_S = 60.0
_LOST_SHARE = 0.1
_PARTS_WITHIN = 1.3
"""A product of means is the mean of the product only for answers of like lengths."""
_WHOLE = 100.0
_BURST_SHARE = 0.25
"""Of requests that come evenly, half would have to be waiting since the first quarter."""
_BURST_MIN = 10


def like_a_limiter(run: ImportedRun) -> Doubt | None:
    """Requests were lost, and exactly as many as some limit a minute came through."""
    wanted, completed = asked(run), run.numbers.get("completed")
    lasted_s = measured(run.conditions.labels.get("sent_for_s")) or run.numbers.get("duration_s")
    if not wanted or not completed or not lasted_s or wanted - completed < _LOST_SHARE * wanted:
        return None
    begun = int(lasted_s // _MINUTE_S) + 1
    limit = next((completed / m for m in (begun, begun + 1) if completed / m in _ROUND), None)
    if limit is None:
        return None
    minutes = round(completed / limit)
    return Doubt(
        DoubtKind.LIKE_A_LIMITER,
        f"{said(completed)} of {said(wanted)} requests in {said(lasted_s)} s came through: exactly {said(limit)} a "
        f"minute{f' over {minutes} minutes' if minutes > 1 else ''}. That is how a limiter of a gateway answers, not "
        "how an engine fails.",
        "Look for 429 in the gateway's log, and measure again without the limiter.",
        brief=f"{said(completed)} of {said(wanted)}",
    )


def told_to_fail(run: ImportedRun) -> Doubt | None:
    """A share of success without any count."""
    told = run.conditions.labels.get("success_percent", "").removesuffix("%").strip()
    share = measured(told)
    if share is None or share >= _WHOLE or "completed" in run.numbers:
        return None
    return Doubt(
        DoubtKind.REQUESTS_FAILED,
        f"{said(share)} % succeeded, so {said(_WHOLE - share)} % failed; of how many the file does not say. Times are "
        "those of the survivors.",
        "Find out why they failed and run again.",
        blocking=_WHOLE - share >= _WHOLE * _LOST_SHARE,
        brief=f"{said(share)} %",
    )


def concurrency_not_reached(run: ImportedRun) -> Doubt | None:
    """More places than requests."""
    cap, wanted = run.conditions.max_concurrency, asked(run)
    if cap is None or not wanted or cap <= wanted:
        return None
    return Doubt(
        DoubtKind.CONCURRENCY_NOT_REACHED,
        f"{said(cap)} at once are in the label, and {said(wanted)} requests were sent in all: no more than "
        f"{said(wanted)} were ever in flight.",
        f"Read this as concurrency {said(wanted)} at most, or send several times as many requests as places.",
        brief=f"{said(wanted)} requests for {said(cap)} places",
    )


def parts_against_whole(run: ImportedRun) -> Doubt | None:
    """TTFT + TPOT x (n - 1) is E2EL."""
    ttft, tpot, whole, n = stat(run, "ttft"), stat(run, "tpot"), stat(run, "e2el"), output_tokens_each(run)
    if ttft is None or not tpot or not whole or not n or n < 2:
        return None
    parts = ttft + tpot * (n - 1)
    ratio = parts / whole
    if max(ratio, 1 / ratio) < _PARTS_WITHIN:
        return None
    return Doubt(
        DoubtKind.PARTS_AGAINST_WHOLE,
        f"{said(ttft)} + {said(tpot)} x ({said(n)} - 1) ms = {said(parts / MS_PER_S)} s, but E2EL is "
        f"{said(whole / MS_PER_S)} s ({percent(parts, whole)}): TPOT, or the tokens that it divides by, are of other "
        "answers.",
        "Use neither TPOT nor tokens a second before the tokens are counted again.",
        brief=f"{said(parts / MS_PER_S)} s against {said(whole / MS_PER_S)} s",
    )


def queue_of_a_burst(run: ImportedRun) -> Doubt | None:
    """Who waits for a good part of the whole run waits for the others, not for the engine; at a rate, nobody knows."""
    if run.conditions.request_rate is not None:
        return None
    ttft, lasted_s, n = stat(run, "ttft", "p50"), run.numbers.get("duration_s"), run.numbers.get("completed")
    if ttft is None or not lasted_s or not n or n < _BURST_MIN or ttft < _BURST_SHARE * lasted_s * MS_PER_S:
        return None
    return Doubt(
        DoubtKind.QUEUE_OF_A_BURST,
        f"Half of the requests waited {said(ttft / MS_PER_S)} s or more for their first token, "
        f"{percent(ttft / MS_PER_S, lasted_s)} of the {said(lasted_s)} s that all {said(n)} took: they were sent at "
        "once and stood in a queue, so TTFT grows with their number.",
        "Take the throughput from this run, and latencies from a rate that the server keeps up with.",
        brief=f"{said(ttft / MS_PER_S)} s of {said(lasted_s)} s",
    )


RULES = (like_a_limiter, told_to_fail, concurrency_not_reached, parts_against_whole, queue_of_a_burst)
