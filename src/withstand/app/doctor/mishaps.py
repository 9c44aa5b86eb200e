"""Requests that must fail, and an engine that fails: what comes of it at the other end of the path."""

from collections.abc import Iterator

from withstand.app.doctor.echo import Echo
from withstand.app.doctor.line import Line
from withstand.app.doctor.patient import Patient, mark, wait_for
from withstand.doctor.faults import (
    BAD_JSON,
    NO_MODEL,
    TOO_LONG,
    judge_broken,
    judge_error_event,
    judge_refusal,
    judge_status,
)
from withstand.doctor.finding import Finding, Question

_CONTEXT_MAX = 65536
_NO_MODEL = "withstand-no-such-model"
_LIMITED = 429
_LATER_S = "17"
_WELL_AGAIN_S = 20.0
_STATUSES = (
    (Question("errors.429", "The engine's 429"), f"limited:{_LATER_S}", _LIMITED, _LATER_S),
    (Question("errors.503", "The engine's 503"), "http_503", 503, None),
    (Question("errors.500", "The engine's 500"), "http_500", 500, None),
)
_EVENT = Question("errors.event", "An error in mid-stream")
_CUT = Question("errors.cut", "The engine dies")
_ELSEWHERE = "another engine than the echo engine was asked"


def examine_refusals(patient: Patient) -> Iterator[Finding]:
    """What is the client's own mistake."""
    with patient.brief() as line:
        yield _unknown_model(patient, line)
        yield judge_refusal(
            BAD_JSON,
            line.ask(b'{"model": "m", "messages": [', stream=False),
            (400, 422),
            "Have the path refuse what it cannot read.",
        )
        if patient.echo is None:
            yield _too_long(line, patient)


def _unknown_model(patient: Patient, line: Line) -> Finding:
    word = mark()
    heard = line.ask(line.body(stream=False, tokens=4, prompt=word, model=_NO_MODEL), stream=False)
    if patient.echo and heard.ok and patient.echo.served(word):
        return NO_MODEL.ok("goes on to the engine, which is to refuse it")
    passes = "Whoever mistypes a model gets another one: have the path refuse unknown names (llama.cpp never does)."
    return judge_refusal(NO_MODEL, heard, (404,), passes)


def _too_long(line: Line, patient: Patient) -> Finding:
    """By the path's word, or by the engine's behind it."""
    context = line.endpoint.context() or (patient.direct.endpoint.context() if patient.direct else None)
    if context is None or context > _CONTEXT_MAX:
        why = "the path does not tell its context" if context is None else f"{context:,} tokens are too many to send"
        return TOO_LONG.not_tried(why)
    body = line.body(stream=False, tokens=4, prompt="a " * (context + 64))
    return judge_refusal(
        TOO_LONG, line.ask(body, stream=False), (400, 413), "See whether the prompt was cut, or the limit is not kept."
    )


def examine_faults(patient: Patient, echo: Echo) -> Iterator[Finding]:
    """What goes wrong at the engine. It is well again afterwards, and the path has noticed it.

    Raises:
        LimitedError: the path says 429 without asking the engine.
    """
    with patient.brief() as line:
        for question, behaviour, status, retry_after in _STATUSES:
            word = _failing(echo, behaviour)
            heard = line.ask(line.body(stream=False, tokens=4, prompt=word), stream=False, limits=True)
            tries = len(echo.served(word))
            if heard.http_status == _LIMITED and not tries:
                raise line.limited(heard)
            if heard.ok and not tries:
                yield question.not_tried(_ELSEWHERE)
            else:
                yield judge_status(question, heard, status, retry_after, tries)
            _recover(line, echo)
        for question, behaviour in ((_EVENT, "error_midstream:3"), (_CUT, "premature_close:3")):
            word = _failing(echo, behaviour)
            heard = line.ask(line.body(stream=True, tokens=16, prompt=word))
            if heard.ok and not echo.served(word):
                yield question.not_tried(_ELSEWHERE)
            else:
                yield (judge_error_event if question is _EVENT else judge_broken)(question, heard)
            _recover(line, echo)


def _failing(echo: Echo, behaviour: str) -> str:
    echo.play(f"behaviour={behaviour}")
    return mark()


def _recover(line: Line, echo: Echo) -> None:
    """A hop that has left the engine alone after a failure is given time to come back to it."""
    echo.play()
    wait_for(lambda: line.ask(line.body(stream=True, tokens=1), limits=True).ok, _WELL_AGAIN_S)
