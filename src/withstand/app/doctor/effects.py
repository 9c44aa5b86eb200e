"""Fields by their effect on answers: each is asked for so that its answer would have been another without it."""

from collections.abc import Callable, Iterator
from typing import Any

from withstand.app.doctor.line import COUNTING, Line, Listening, TimeUpError
from withstand.app.doctor.patient import Patient
from withstand.doctor.fields import LENGTHS, Effect, Tried, judge_field, question_of
from withstand.doctor.finding import Finding
from withstand.doctor.heard import Heard
from withstand.doctor.pace import Load

_FEW = 7
_ENOUGH = 3 * _FEW
_LONG = 24
_SHORT_PROMPT = "Answer with the one word yes."
_OPEN_PROMPT = "Write one sentence about an animal."
_HOT = 1.8
FIELDS_LOAD = Load(14, _LONG)
"""What ``examine_fields`` takes, but for what the engine itself is asked beside it."""

Probe = Callable[[Line], Tried]


def examine_lengths(patient: Patient) -> Iterator[Finding]:
    """The two fields of a length, first of all: the other questions ask with the one that works."""
    fields = LENGTHS if patient.path.is_chat else LENGTHS[1:]
    works = None
    for field in fields:
        seen = _length(field)(patient.path)
        works = works or (field if seen.effect is Effect.HAS else None)
        yield _judged(patient, field, seen, _length(field))
    if works:
        patient.learn_length_field(works)


def examine_fields(patient: Patient) -> Iterator[Finding]:
    """All others."""
    for field, probe in _PROBES.items():
        try:
            yield _judged(patient, field, probe(patient.path), probe)
        except TimeUpError:
            yield patient.left_out(question_of(field))


def _judged(patient: Patient, field: str, seen: Tried, probe: Probe) -> Finding:
    """The engine itself is asked only where that tells more."""
    ask_direct = patient.direct is not None and seen.effect in {Effect.HAS_NOT, Effect.REFUSED}
    return judge_field(field, seen, probe(patient.direct) if ask_direct and patient.direct else None)


def _ask(line: Line, *, tokens: int | None, prompt: str | None = None, **fields: Any) -> Heard:
    body = line.body(stream=False, tokens=tokens, prompt=prompt or COUNTING, **fields)
    return line.ask(body, stream=False)


def _refused(heard: Heard) -> Tried | None:
    """Why nothing can be said; None = it is a good answer."""
    if heard.ok:
        return None
    if heard.http_status and 400 <= heard.http_status < 500:
        return Tried(Effect.REFUSED, f"refused: {heard.why[:80]}")
    return Tried(Effect.UNKNOWN, f"no good answer: {heard.why[:80]}")


def _length(field: str) -> Probe:
    """A stream, left as soon as it is too long: without its limit an answer may be endless."""

    def probe(line: Line) -> Tried:
        heard = line.ask_long(stream=True, tokens=None, leave=_too_long, **{field: _FEW})
        if heard.left_ns is not None:
            return Tried(Effect.HAS_NOT, f"{_FEW} tokens were asked for, over {_ENOUGH} came")
        if refused := _refused(heard):
            return refused
        if heard.tokens > _FEW:
            return Tried(Effect.HAS_NOT, f"{_FEW} tokens were asked for, {heard.tokens} came")
        if line.endless_fails and heard.finish_reason != "length":
            return Tried(Effect.UNKNOWN, f"the answer has {heard.tokens} tokens of its own accord")
        return Tried(Effect.HAS, f"{_FEW} tokens asked for, {heard.tokens} came, {heard.finish_reason}")

    return probe


def _too_long(exchange: Listening) -> bool:
    return len(exchange.reply.chunk_ns) > _ENOUGH


def _ending(field: str, value: bool | int) -> Probe:
    """A question with a short answer, which must not end early."""

    def probe(line: Line) -> Tried:
        if field == "ignore_eos" and line.endless_fails:
            return Tried(Effect.REFUSED, _only_with(line.endless_fails))
        plain = _ask(line, tokens=_LONG, prompt=_SHORT_PROMPT, temperature=0)
        forced = _ask(line, tokens=_LONG, prompt=_SHORT_PROMPT, temperature=0, **{field: value})
        if plain.ok and not forced.ok:
            return Tried(Effect.REFUSED, _only_with(forced.why))
        if refused := _refused(plain):
            return refused
        said = f"{plain.tokens} tokens without it, {forced.tokens} with it"
        if plain.tokens >= _LONG:
            return Tried(Effect.UNKNOWN, f"the answer is {_LONG} tokens long without it too")
        return Tried(Effect.HAS if forced.tokens >= _LONG else Effect.HAS_NOT, said)

    return probe


def _only_with(why: str) -> str:
    return f"requests fail with it, and not without: {why[:80]}"


def _stop(line: Line) -> Tried:
    plain = line.ask_long(stream=False, tokens=_LONG, temperature=0)
    if refused := _refused(plain):
        return refused
    words = plain.text.split()
    if len(words) < 4:
        return Tried(Effect.UNKNOWN, "the answer has too few words to stop at one")
    word = words[len(words) // 2]
    stopped = line.ask_long(stream=False, tokens=_LONG, temperature=0, stop=[word])
    if refused := _refused(stopped):
        return refused
    if word in stopped.text.split():
        return Tried(Effect.HAS_NOT, "the answer goes on past the stop word")
    return Tried(Effect.HAS, f"it ends before the stop word, {stopped.finish_reason}")


def _temperature(line: Line) -> Tried:
    cold = [_ask(line, tokens=_LONG, prompt=_OPEN_PROMPT, temperature=0) for _ in range(2)]
    hot = [_ask(line, tokens=_LONG, prompt=_OPEN_PROMPT, temperature=_HOT) for _ in range(2)]
    if refused := _refused(cold[0]) or _refused(hot[0]):
        return refused
    if cold[0].text == cold[1].text:
        if hot[0].text != hot[1].text:
            return Tried(Effect.HAS, f"at 0 answers are the same, at {_HOT} they differ")
        return Tried(Effect.UNKNOWN, f"at 0 as at {_HOT} answers are the same")
    return Tried(Effect.HAS_NOT, "at 0 two answers differ")


def _seed(line: Line) -> Tried:
    seeds = (7, 7, 8)
    same, again, other = (_ask(line, tokens=_LONG, prompt=_OPEN_PROMPT, temperature=_HOT, seed=s) for s in seeds)
    if refused := _refused(same) or _refused(again) or _refused(other):
        return refused
    if same.text != again.text:
        return Tried(Effect.HAS_NOT, "answers with the same seed differ")
    if same.text == other.text:
        return Tried(Effect.UNKNOWN, "answers are the same with any seed")
    return Tried(Effect.HAS, "the same seed gives the same answer, another one another")


def _unknown(line: Line) -> Tried:
    heard = _ask(line, tokens=_FEW, withstand_unknown_field={"a": [1, None]})
    if refused := _refused(heard):
        return refused
    return Tried(Effect.HAS, "accepted; whether it arrives, --echo tells")


_PROBES: dict[str, Probe] = {
    "ignore_eos": _ending("ignore_eos", True),
    "min_tokens": _ending("min_tokens", _LONG),
    "stop": _stop,
    "temperature": _temperature,
    "seed": _seed,
    "unknown fields": _unknown,
}
