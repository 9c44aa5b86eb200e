"""From what a client has seen of an engine to the parameters of its model. Pure.

It says how far off the model is: for the answers that it was made from, and for each stage by one that never saw it.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean, median

import msgspec

from withstand.errors import MeasureError
from withstand.record import Sample, Seen
from withstand.sim.parameters import Parameters
from withstand.sim.rows import Heard, Row, rows_of
from withstand.sim.squares import Coefficient, fitted
from withstand.sim.virtual import Asked, answers

_TERMS = ("step_ms", "sequence_ms", "prefill_token_ms", "overhead_ms")
_ANSWERS_MIN = 20
_LOOKS_MIN = 5
_UNSURE = 0.25
"""A step's time must be known so well where it was seen."""
_DISTURBED = 0.08
"""Half of the answers of an engine that has its machine for itself are nearer to a model of it."""
_QUIETER = (
    "Half of the answers are off by {:.0f} % or more from any engine of constant speed: something else seems to have "
    "used its machine: measure while nothing does, or much longer."
)
_CURES = {
    "step_ms": "Measure longer, and one request at a time too: --max-concurrency 1,4.",
    "sequence_ms": "Measure longer, and with more requests at once too: --max-concurrency 1,4,16.",
    "prefill_token_ms": "Measure longer, and with prompts of lengths that differ more: "
    "--set workload.options.input_len=[16,400].",
    "overhead_ms": "Prompts that have the engine for themselves tell it, of lengths that differ: measure with "
    "--max-concurrency 1 and --set workload.options.input_len=[16,400].",
}


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """One stage, and what the model of the others says of it; means in ms."""

    stage: str
    ttft_ms: float
    ttft_said_ms: float
    tpot_ms: float | None
    tpot_said_ms: float | None


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """A model, and how good it is."""

    parameters: Parameters
    coefficients: dict[str, Coefficient]
    answers: int
    alone: int
    """Prompts that had the engine for themselves."""
    tpot_off: float | None
    """Median of |model - seen| / seen over the answers' times after their first token."""
    ttft_off: float | None
    """The same of the TTFT of prompts that had the engine for themselves."""
    held: tuple[Held, ...]
    notices: tuple[str, ...]
    """What could not be told, and what stands in its place."""


Stages = Mapping[str, Sequence[Heard]]


def fit(
    stages: Stages,
    samples: Sequence[Sample] = (),
    base: Parameters | None = None,
    users: Mapping[str, int] | None = None,
    template_tokens: int = 0,
) -> Fit:
    """``base`` has what cannot be fitted; ``users``: of stages in which so many ask again as soon as they are answered.

    ``template_tokens``: what the server counted of each prompt beyond what was asked for.

    Raises:
        MeasureError: the runs cannot tell.
    """
    base = base or Parameters(
        prefix_caching=any(_is_cached(a) for found in stages.values() for a in found), template_tokens=template_tokens
    )
    rows = _rows(stages, base)
    coefficients = _coefficients(rows)
    _check(coefficients, rows)
    parameters, notices = _beside(_with(base, coefficients), stages, samples)
    everything = [answer for found in stages.values() for answer in found]
    firsts = [row for row in rows if row.firsts]
    held = tuple(_held_out(stages, parameters, users or {}))
    return Fit(
        parameters=parameters,
        coefficients=coefficients,
        answers=len(everything),
        alone=len(firsts),
        tpot_off=_off([row for row in rows if not row.firsts], coefficients),
        ttft_off=_off(firsts, coefficients),
        held=held,
        notices=(*notices, *_unknown(coefficients), *([] if held else [_NONE_HELD])),
    )


_NONE_HELD = (
    "No stage could be held out, for the others alone cannot tell: how well the model predicts another load is not "
    "known. Measure three loads or more."
)


def _is_cached(answer: Heard) -> bool:
    return answer.prompt_tokens < answer.whole_prompt_tokens


def _rows(stages: Stages, base: Parameters) -> list[Row]:
    return [row for found in stages.values() for row in rows_of(found, base.max_batched_tokens)]


def _coefficients(rows: Sequence[Row]) -> dict[str, Coefficient]:
    if len(rows) < _ANSWERS_MIN:
        raise MeasureError(
            f"{len(rows)} streamed answers of several tokens cannot tell how the engine works; measure {_ANSWERS_MIN} "
            "or more, with their tokens counted by the server."
        )
    width = len(_TERMS) if any(row.firsts for row in rows) else len(_TERMS) - 1
    order = sorted(rows, key=lambda row: row.at_ns)
    points = [(row.terms[:width], row.time_ns / 1e6, 1 / max(1, row.steps)) for row in order]
    found = fitted(points)
    if found is None:
        raise MeasureError(
            "These runs cannot tell a step's own time from that of its sequences and prompts: the load was always the "
            "same. Measure at two rates or concurrencies at least, e.g. --max-concurrency 1,4."
        )
    return dict(zip(_TERMS, found, strict=False))


def _check(coefficients: Mapping[str, Coefficient], rows: Sequence[Row]) -> None:
    """Each coefficient must be known well enough to matter little where it was seen."""
    steps = [row for row in rows if not row.firsts] or list(rows)
    heaviest = max(row.sequences / row.steps for row in steps)
    prompt = max((row.prefill_tokens for row in rows if row.firsts), default=0.0)
    a, b, c = (coefficients[name] for name in _TERMS[:3])
    for name, half, whole in (
        ("step_ms", a.half, a.value + b.value),
        ("sequence_ms", b.half * heaviest, a.value + b.value * heaviest),
        ("prefill_token_ms", c.half * prompt, a.value + c.value * prompt),
    ):
        if half > _UNSURE * abs(whole):
            off = _off(steps, coefficients) or 0.0
            cure = _CURES[name] if off <= _DISTURBED else _QUIETER.format(100 * off)
            raise MeasureError(
                f"These runs cannot tell {name}: it may be off by {half:.3g} ms where all is {whole:.3g} ms. {cure}"
            )


def _with(base: Parameters, coefficients: Mapping[str, Coefficient]) -> Parameters:
    return msgspec.structs.replace(base, **{name: max(0.0, found.value) for name, found in coefficients.items()})


def _unknown(coefficients: Mapping[str, Coefficient]) -> list[str]:
    said = [
        f"{name} cannot be told from these runs: it came out below 0 ({found.value:.3g} ms), which no engine takes, "
        f"and stands as 0. {_CURES[name]}"
        for name, found in coefficients.items()
        if found.value < 0
    ]
    if "overhead_ms" not in coefficients:
        said.append(
            f"No prompt had the engine for itself, so overhead_ms is not known and stands as 0. {_CURES['overhead_ms']}"
        )
    return said


def _said_ms(row: Row, coefficients: Mapping[str, Coefficient]) -> float:
    return sum(
        term * coefficients[name].value for name, term in zip(_TERMS, row.terms, strict=True) if name in coefficients
    )


def _off(rows: Sequence[Row], coefficients: Mapping[str, Coefficient]) -> float | None:
    shares = [abs(_said_ms(row, coefficients) * 1e6 - row.time_ns) / row.time_ns for row in rows if row.time_ns]
    return median(shares) if shares else None


# What the server's own metrics tell.


def _beside(parameters: Parameters, stages: Stages, samples: Sequence[Sample]) -> tuple[Parameters, list[str]]:
    notices = []
    slots = [s.values[Seen.RUNNING] for s in samples if s.values.get(Seen.WAITING, 0) > 0 and Seen.RUNNING in s.values]
    if len(slots) >= _LOOKS_MIN:
        parameters = msgspec.structs.replace(parameters, max_sequences=max(1, round(max(slots))))
    else:
        notices.append(f"Nobody was seen to wait in the engine: max_sequences stays {parameters.max_sequences}.")
    tokens = _kv_tokens(stages, samples)
    if tokens is None:
        notices.append(f"The KV cache was not seen in use: kv_blocks stays {parameters.kv_blocks}.")
    else:
        blocks = max(1, round(tokens / parameters.block_tokens))
        parameters = msgspec.structs.replace(parameters, kv_blocks=blocks)
    return parameters, notices


def _kv_tokens(stages: Stages, samples: Sequence[Sample]) -> float | None:
    """Tokens that are held by the share that they take, through the origin."""
    everything = [answer for found in stages.values() for answer in found]
    shares = [(s.at_ns, s.values[Seen.KV_SHARE]) for s in samples if s.values.get(Seen.KV_SHARE, 0) > 0]
    pairs = [(tokens, share) for at_ns, share in shares if (tokens := _tokens_at(everything, at_ns))]
    if len(pairs) < _LOOKS_MIN:
        return None
    return sum(tokens**2 for tokens, _ in pairs) / sum(tokens * share for tokens, share in pairs)


def _tokens_at(everything: Sequence[Heard], at_ns: int) -> float:
    """In the cache, of those that had begun to speak; the others' are not known and as good as equal."""
    held = 0.0
    for answer in everything:
        if answer.sent_ns <= at_ns <= answer.last_ns:
            long_ns = max(1, answer.last_ns - answer.first_ns)
            said = max(0.0, (at_ns - answer.first_ns) / long_ns) * answer.output_tokens
            held += answer.whole_prompt_tokens + said
    return held


# Stages that the model has not seen.


def _held_out(stages: Stages, whole: Parameters, users: Mapping[str, int]) -> list[Held]:
    held = []
    for name, found in stages.items():
        others = {other: answers_ for other, answers_ in stages.items() if other != name}
        try:
            coefficients = _coefficients(_rows(others, whole))
        except MeasureError:
            continue  # the others alone cannot tell
        held.append(predicted(name, found, _with(whole, coefficients), users.get(name)))
    return held


def predicted(name: str, found: Sequence[Heard], parameters: Parameters, users: int | None = None) -> Held:
    """What the model says of requests that came at these instants, or of so many users, beside what was seen."""
    parameters = msgspec.structs.replace(parameters, prefix_caching=False)  # what was found there is not counted here
    order = sorted(found, key=lambda answer: answer.sent_ns)
    asked = [
        Asked(at_ns=a.sent_ns, prompt_tokens=a.prompt_tokens, output_tokens=max(1, a.output_tokens)) for a in order
    ]
    said = answers(asked, parameters, users)
    seen_tpot = [(a.last_ns - a.first_ns) / (a.output_tokens - 1) / 1e6 for a in order if a.output_tokens > 1]
    said_tpot = [a.tpot_ns / 1e6 for a in said if a.tpot_ns is not None]
    return Held(
        stage=name,
        ttft_ms=fmean((a.first_ns - a.sent_ns) / 1e6 for a in order),
        ttft_said_ms=fmean(a.ttft_ns / 1e6 for a in said),
        tpot_ms=fmean(seen_tpot) if seen_tpot else None,
        tpot_said_ms=fmean(said_tpot) if said_tpot else None,
    )
