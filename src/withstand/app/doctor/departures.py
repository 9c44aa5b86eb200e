"""We leave in the middle of an answer, and look when the engine stops: by our echo engine, or by its metrics."""

import itertools
from collections.abc import Iterator

import msgspec

from withstand import clock
from withstand.app.doctor.echo import Echo
from withstand.app.doctor.line import Leave, Line, Listening
from withstand.app.doctor.patient import Patient, mark, wait_for
from withstand.doctor.finding import Finding, Question
from withstand.doctor.heard import NS_PER_MS
from withstand.doctor.leaving import METRICS, PREFILL, STREAM, WHOLE, judge_endless, judge_gauge, judge_noticed
from withstand.errors import TargetError
from withstand.record import Seen
from withstand.wire.engine_metrics import read_engine

_EVENTS = 5
_MANY = 2000
_METRICS_OFF = "Have the engine serve /metrics (vLLM does; SGLang: --enable-metrics; llama.cpp: --metrics)."


def examine_departures(patient: Patient) -> Iterator[Finding]:
    """By whatever can see the engine."""
    if patient.echo:
        yield from _by_echo(patient, patient.echo)
    elif patient.direct:
        yield _by_metrics(patient.path, patient.direct, patient.dose.notice_s)
    else:
        yield METRICS.not_tried("nothing sees the engine", "Give its own address by --direct, or use --echo.")


# The echo engine sees its connection close.


class _Case(msgspec.Struct, frozen=True):
    """When we leave, and what the echo engine is doing then."""

    question: Question
    how: str
    stream: bool


_CASES = (
    _Case(STREAM, "ttft=20,itl=20,n=2000", stream=True),
    _Case(PREFILL, "ttft=12000", stream=True),
    _Case(WHOLE, "ttft=12000", stream=False),
)


def _by_echo(patient: Patient, echo: Echo) -> Iterator[Finding]:
    with patient.brief() as line:
        try:
            for case in _CASES:
                yield _left(line, echo, case, patient.dose.notice_s)
        finally:
            echo.play()


def _left(line: Line, echo: Echo, case: _Case, notice_s: float) -> Finding:
    question, stream = case.question, case.stream
    echo.play(case.how)
    word = mark()
    leave = _after_events(notice_s) if question is STREAM else lambda _: bool(echo.served(word))
    heard = line.ask(line.body(stream=stream, tokens=_MANY, prompt=word), stream=stream, leave=leave)
    if heard.left_ns is None:
        return question.not_tried(f"the answer ended before we left: {heard.why}")
    wait_for(lambda: all(one.aborted_ns or one.done_ns for one in echo.served(word)), notice_s)
    seen = [one.aborted_ns for one in echo.served(word)]
    aborted_ns = max((at_ns for at_ns in seen if at_ns is not None), default=None) if all(seen) else None
    after_ms = None if aborted_ns is None else (aborted_ns - heard.left_ns) / NS_PER_MS
    return judge_noticed(question, after_ms, notice_s)


def _after_events(patience_s: float) -> Leave:
    """A stream that is held back is left all the same."""
    began_ns = clock.now_ns()

    def leave(exchange: Listening) -> bool:
        return len(exchange.reply.chunk_ns) >= _EVENTS or clock.now_ns() - began_ns > patience_s * 1e9

    return leave


# The engine's own metrics.


def _by_metrics(path: Line, direct: Line, notice_s: float) -> Finding:
    """The engine itself is asked before the path: what it never does is no fault of a hop."""
    if _running(direct) is None:
        return METRICS.not_tried("the engine tells no running requests", _METRICS_OFF)
    if not wait_for(lambda: _running(direct) == 0, notice_s):
        return METRICS.not_tried("others use the engine", "Look again when nobody else does.")
    after_s = 0.0
    for stream, line in itertools.product((True, False), (direct, path)):
        heard = line.ask_long(stream=stream, tokens=_MANY, leave=_when_running(direct, stream=stream))
        if heard.left_ns is None:
            return METRICS.not_tried(f"the answer ended before we left: {heard.why}")
        if not wait_for(lambda: _running(direct) == 0, notice_s):
            how = "streaming" if stream else "not streaming"
            return judge_endless(notice_s, how) if line is direct else judge_gauge(METRICS, None, notice_s, how)
        after_s = (clock.now_ns() - heard.left_ns) / 1e9
    return judge_gauge(METRICS, after_s, notice_s, "streaming and not")


def _when_running(direct: Line, *, stream: bool) -> Leave:
    def leave(exchange: Listening) -> bool:
        begun = len(exchange.reply.chunk_ns) >= _EVENTS or not stream
        return begun and bool(_running(direct))

    return leave


def _running(direct: Line) -> float | None:
    """Requests that run and wait there; None = it does not tell."""
    try:
        status, body = direct.endpoint.asker.ask("GET", direct.endpoint.address.root_url("/metrics"))
    except TargetError:
        return None
    _, seen = read_engine(body.decode("utf-8", "replace")) if status == 200 else (None, {})
    return None if Seen.RUNNING not in seen else seen[Seen.RUNNING] + seen.get(Seen.WAITING, 0)
