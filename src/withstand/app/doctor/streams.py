"""Long, short and whole answers in turn: how the path streams, and what it counts."""

from collections.abc import Iterator

from withstand.app.doctor.patient import Patient
from withstand.doctor.finding import Finding
from withstand.doctor.heard import Heard
from withstand.doctor.pace import pace_of
from withstand.doctor.shape import shape_of
from withstand.doctor.streaming import judge_framing, judge_shape
from withstand.doctor.usage import judge_fit, judge_told
from withstand.errors import TargetError
from withstand.load.ask import engine_tokenizer

_ROUNDS = 3
_SHORT = 4


def examine_streams(patient: Patient) -> Iterator[Finding]:
    """Findings of the chapters ``stream`` and ``usage``."""
    line, tokens = patient.path, patient.dose.tokens
    long: list[Heard] = []
    short: list[Heard] = []
    whole: list[Heard] = []
    for _ in range(_ROUNDS):
        short.append(line.ask(line.body(stream=True, tokens=_SHORT)))
        long.append(line.ask(line.body(stream=True, tokens=tokens, ignore_eos=True)))
        whole.append(line.ask(line.body(stream=False, tokens=tokens, ignore_eos=True), stream=False))
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
