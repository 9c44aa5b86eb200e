"""Long, short and whole answers in turn: how the path streams, and what it counts."""

import contextlib
from collections.abc import Iterator

from withstand import clock
from withstand.app.doctor.line import Line, TimeUpError
from withstand.app.doctor.patient import Patient
from withstand.doctor.finding import Finding, Question
from withstand.doctor.heard import NS_PER_MS, Heard
from withstand.doctor.pace import pace_of
from withstand.doctor.shape import shape_of
from withstand.doctor.streaming import SHAPE, judge_framing, judge_shape
from withstand.doctor.usage import judge_fit, judge_told
from withstand.errors import TargetError
from withstand.load.ask import engine_tokenizer

_ROUNDS = 3
_SHORT = 4
_TOKENS_MIN = 16


def examine_streams(patient: Patient) -> Iterator[Finding]:
    """Findings of the chapters ``stream`` and ``usage``."""
    line, tokens = patient.path, patient.dose.tokens
    long: list[Heard] = []
    short: list[Heard] = []
    whole: list[Heard] = []
    with contextlib.suppress(TimeUpError):  # what there is by then is judged
        while len(whole) < _ROUNDS:
            short.append(line.ask(line.body(stream=True, tokens=_SHORT)))
            tokens = tokens if long else _affordable(tokens, short[0], line)
            long.append(line.ask_long(stream=True, tokens=tokens))
            whole.append(line.ask_long(stream=False, tokens=tokens))
    if not long:
        yield patient.left_out(SHAPE)
        return
    failed = next((heard for heard in long if not heard.ok), None)
    good = [heard for heard in long if heard.ok]
    yield judge_shape(shape_of(good, _good(short), _good(whole)), failed)
    if patient.echo is None:  # it speaks at another pace when costs are asked for
        patient.pace = pace_of(_good(short), good)
    streamed = [heard for heard in good if heard.streamed]
    yield from judge_framing(streamed)
    if streamed:
        yield judge_told(streamed)
        yield _fit(patient, streamed)
    if len(whole) < _ROUNDS:
        yield patient.left_out(Question("stream.again", "The same again"))


def _affordable(tokens: int, short: Heard, line: Line) -> int:
    """Of a long answer, so that streamed and whole it takes half of the time that there is."""
    events = short.events_ns
    if line.until_ns is None or short.ttft_ms is None or len(events) < 2:
        return tokens
    left_ms = (line.until_ns - clock.now_ns()) / NS_PER_MS
    itl_ms = (events[-1] - events[0]) / (len(events) - 1) / NS_PER_MS
    few = int((left_ms / 4 - short.ttft_ms) / itl_ms) if itl_ms > 0 else tokens
    return min(tokens, max(few, _TOKENS_MIN))


def _good(answers: list[Heard]) -> list[Heard]:
    return [heard for heard in answers if heard.ok]


def _fit(patient: Patient, streamed: list[Heard]) -> Finding:
    told = [heard for heard in streamed if heard.usage_tokens is not None]
    counts, counter = _counted(patient, told)
    return judge_fit([(heard.usage_tokens or 0, count) for heard, count in zip(told, counts, strict=True)], counter)


def _counted(patient: Patient, told: list[Heard]) -> tuple[list[int], str]:
    """By the engine's tokenizer, if there is one that can be asked; else the events."""
    for line in (patient.direct, patient.path):
        if line is None or not told:
            continue
        endpoint = line.endpoint
        try:
            if tokenizer := engine_tokenizer(endpoint.asker, endpoint.address, line.model):
                return tokenizer.counts([heard.text for heard in told]), "the engine's tokenizer"
        except TargetError:
            continue
    return [len(heard.events_ns) for heard in told], "output events"
