"""Doubts about counts and rates: what was asked, what came back, and whether sums and throughputs agree."""

import math

from withstand.interop.checks.words import MS_PER_S, asked, latency_ms, said, stat
from withstand.interop.shape import ImportedRun
from withstand.metrics.doubts import Doubt, DoubtKind
from withstand.metrics.rounding import percent

_BLOCKING_SHARE = 0.1
_ACHIEVED_MIN = 0.95
_SIGMAS = 2.0
_LONG_DRAIN = 0.15
_SUM_WITHIN = 0.03
_LITTLE_WITHIN = 0.1
_HALF_A_DIGIT = 0.005
_COARSE = 0.02
_PRINTED_AS = "printed as "
_SUMS = (
    ("request_throughput", "completed", "requests"),
    ("output_throughput", "total_output_tokens", "output tokens"),
    ("input_throughput", "total_input_tokens", "prompt tokens"),
)
_PEAKS = (
    ("output_events_peak", "output_throughput", "the peak counts chunks, the mean tokens"),
    ("concurrency_touching", "concurrency_mean", "one of them is not what its name says"),
)


def fewer_than_asked(run: ImportedRun) -> Doubt | None:
    """Failures = asked - completed, also where the file never says the word."""
    wanted, completed = asked(run), run.numbers.get("completed")
    if wanted is None or completed is None or completed >= wanted or not wanted:
        return None
    missing = wanted - completed
    return Doubt(
        DoubtKind.FEWER_THAN_ASKED,
        f"{said(completed)} of {said(wanted)} requests were completed: {said(wanted)} - {said(completed)} = "
        f"{said(missing)} are missing ({percent(missing, wanted)}), and {_told(run)}. Every rate and time is that of "
        "the survivors.",
        _remedy(run, missing),
        blocking=missing >= _BLOCKING_SHARE * wanted,
        brief=f"{said(completed)} of {said(wanted)}",
    )


def _remedy(run: ImportedRun, missing: float) -> str:
    if (run.numbers.get("incomplete") or 0.0) >= missing:
        return "Let the run drain, or measure longer: what its end cuts are its slowest answers first."
    return "Find out why they failed and run again: numbers of different survivors cannot be compared."


def _told(run: ImportedRun) -> str:
    failed, cut = run.numbers.get("failed"), run.numbers.get("incomplete")
    if cut:
        return f"the end of the run cut {said(cut)} of them"
    return f"the file counts {said(failed)} as failed" if failed else "the file does not say so"


def requests_failed(run: ImportedRun) -> Doubt | None:
    """The file tells of failures, and nobody knows how many were asked."""
    failed, completed = run.numbers.get("failed"), run.numbers.get("completed")
    if not failed or asked(run) is not None:
        return None
    total = failed + (completed or 0)
    return Doubt(
        DoubtKind.REQUESTS_FAILED,
        f"{said(failed)} of {said(total)} requests failed ({percent(failed, total)}); times and throughputs are those "
        "of the others.",
        "Find out why they failed and run again.",
        blocking=failed >= _BLOCKING_SHARE * total,
        brief=f"{said(failed)} of {said(total)}",
    )


def rate_not_achieved(run: ImportedRun) -> Doubt | None:
    """Asked against achieved rate, the chance of a random schedule allowed for."""
    rate, achieved, n = run.conditions.request_rate, run.numbers.get("request_throughput"), asked(run)
    n = n or run.numbers.get("completed")
    duration_s = run.numbers.get("duration_s")
    if not rate or achieved is None or not n:
        return None
    if achieved >= rate * min(_ACHIEVED_MIN, 1 - _SIGMAS / math.sqrt(n)):
        return None
    planned_s, drain_s = n / rate, (latency_ms(run) or 0) / MS_PER_S
    brief = f"{said(achieved)} of {said(rate)} ({percent(achieved, rate)})"
    sentence = f"{said(achieved)} of {said(rate)} requests a second were achieved ({percent(achieved, rate)})"
    if duration_s:
        sentence += f": {said(n)} requests at that rate are {said(planned_s)} s, these took {said(duration_s)} s"
    if _only_drained(n, planned_s, duration_s, drain_s):
        return _too_short(sentence, drain_s, brief)
    cap = run.conditions.max_concurrency
    meaning = (
        f" A cap of {said(cap)} in flight held them back: this is a test at {said(cap)} at once, at no rate."
        if cap
        else " TTFT then measures the length of a queue, and grows with the length of the run."
    )
    return Doubt(
        DoubtKind.RATE_NOT_ACHIEVED,
        f"{sentence}.{meaning}",
        "Compare at rates that were achieved, or call this the throughput at saturation.",
        brief=brief,
    )


def _only_drained(n: float, planned_s: float, duration_s: float | None, drain_s: float) -> bool:
    """The last answers explain it, and are a great part of the run."""
    if not duration_s or drain_s < _LONG_DRAIN * planned_s:
        return False
    return duration_s <= planned_s * (1 + _SIGMAS / math.sqrt(n)) + drain_s


def _too_short(sentence: str, drain_s: float, brief: str) -> Doubt:
    return Doubt(
        DoubtKind.TOO_SHORT_TO_TELL,
        f"{sentence}, but one answer alone takes {said(drain_s)} s: the run is too short to tell whether the rate was "
        "kept.",
        "Run at least ten times as long as an answer takes.",
        brief=brief,
    )


def sums_disagree(run: ImportedRun) -> Doubt | None:
    """Throughput times duration is the count."""
    duration_s = run.numbers.get("duration_s")
    for rate_name, count_name, what in _SUMS:
        rate, count = run.numbers.get(rate_name), run.numbers.get(count_name)
        if not duration_s or not rate or not count or rate_name in run.notes:
            continue
        slack = _SUM_WITHIN * count + _HALF_A_DIGIT * (duration_s + rate)
        if abs(rate * duration_s - count) > slack:
            return Doubt(
                DoubtKind.SUMS_DISAGREE,
                f"{said(rate)} a second times {said(duration_s)} s are {said(rate * duration_s)} {what}, but "
                f"{said(count)} are counted.",
                "One of the three is of other requests or another time; use none of them before it is known which.",
                brief=f"{said(rate * duration_s)}, counted {said(count)}",
            )
    return None


def concurrency_disagrees(run: ImportedRun) -> Doubt | None:
    """Little's law: latencies' sum = mean concurrency times duration, and no more than the cap."""
    e2el, completed = stat(run, "e2el"), run.numbers.get("completed")
    duration_s, mean, cap = run.numbers.get("duration_s"), run.numbers.get("concurrency_mean"), None
    if e2el is None or not completed or not duration_s or "computed" in run.notes.get("concurrency_mean", ""):
        return None
    in_flight = completed * e2el / MS_PER_S / duration_s
    cap = run.conditions.max_concurrency
    sums = f"{said(completed)} requests of {said(e2el)} ms in {said(duration_s)} s are {said(in_flight)} in flight"
    slack = _LITTLE_WITHIN * in_flight + in_flight * _HALF_A_DIGIT / duration_s
    if cap is not None and in_flight > cap + slack:
        end = f"but no more than {said(cap)} were allowed"
    elif mean and in_flight - mean > slack:
        end = f"but {said(mean)} are told as the mean"
    else:
        return None
    return Doubt(
        DoubtKind.CONCURRENCY_DISAGREES,
        f"{sums} on average, {end}: time spent waiting in the client is in the latency, or a unit is wrong.",
        "Ask whether the latency begins before the request is sent.",
        brief=f"{said(in_flight)} in flight",
    )


def peak_below_mean(run: ImportedRun) -> Doubt | None:
    """No peak is below the mean of the same thing."""
    for peak_name, mean_name, why in _PEAKS:
        peak, mean = run.numbers.get(peak_name), run.numbers.get(mean_name)
        if peak is not None and mean is not None and peak < mean * (1 - _COARSE):
            return Doubt(
                DoubtKind.PEAK_BELOW_MEAN,
                f"The peak of {said(peak)} is below the mean of {said(mean)} ({mean_name}): {why}.",
                "Do not use the peak.",
                brief=f"{said(peak)} below {said(mean)}",
            )
    return None


def printed_too_coarse(run: ImportedRun) -> Doubt | None:
    """A rate of 0.00 is no rate; count and duration give it back."""
    coarse = [name for name, note in run.notes.items() if note.startswith(_PRINTED_AS)]
    if not coarse:
        return None
    name = coarse[0]
    printed, exact = run.notes[name].removeprefix(_PRINTED_AS).split(";")[0], said(run.numbers[name])
    count = next((run.numbers.get(count) for rate, count, _ in _SUMS if rate == name), None)
    sum_ = f"{said(count)} / {said(run.numbers['duration_s'])} s = " if count else ""
    return Doubt(
        DoubtKind.PRINTED_TOO_COARSE,
        f"The {name.replace('_', ' ')} is printed as {printed}: it is {sum_}{exact}.",
        "Use the computed value, as is done here.",
        brief=f"{printed} is {exact}",
    )


RULES = (
    fewer_than_asked,
    requests_failed,
    rate_not_achieved,
    sums_disagree,
    concurrency_disagrees,
    peak_below_mean,
    printed_too_coarse,
)
