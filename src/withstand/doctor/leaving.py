"""Whether work stops when its client leaves."""

from withstand.doctor.finding import Finding, Question

STREAM = Question("leaving.stream", "In mid-stream")
PREFILL = Question("leaving.prefill", "Before the first token")
WHOLE = Question("leaving.whole", "Without streaming")
METRICS = Question("leaving.metrics", "By the engine's metrics")

_SOON_MS = 1000.0
_CURE = "Have the hop close the engine's connection when its client's closes: the engine works on for nobody."


def judge_noticed(question: Question, after_ms: float | None, waited_s: float) -> Finding:
    """``after_ms``: from our leaving to the echo engine's seeing it; None = not in the time that we waited."""
    if after_ms is None:
        return question.wrong(f"the engine worked on for {waited_s:g} s and more", _CURE, after_ms=None)
    if after_ms > _SOON_MS:
        return question.doubt(f"the engine learns of it after {after_ms / 1000:.1f} s", _CURE, after_ms=after_ms)
    return question.ok(f"the engine learns of it after {max(after_ms, 0):.1f} ms", after_ms=after_ms)


def judge_gauge(question: Question, idle_after_s: float | None, waited_s: float, seen: str) -> Finding:
    """``idle_after_s``: until the engine's gauge of running requests was back; None = not while we waited."""
    if idle_after_s is None:
        return question.wrong(f"{seen}: the request still runs after {waited_s:g} s", _CURE, idle_after_s=None)
    return question.ok(f"{seen}: nothing runs {idle_after_s:.1f} s later", idle_after_s=idle_after_s)


def judge_endless(waited_s: float, seen: str) -> Finding:
    """An engine that works on for who has left it itself: no hop before it can do better, nor be judged by it."""
    said = f"{seen}: the engine itself, asked directly, works on for {waited_s:g} s and more; no hop can change that"
    cure = "It is the engine's, not the hop's: bound answers by max_tokens, or look for a newer version."
    return METRICS.doubt(said, cure, idle_after_s=None)
