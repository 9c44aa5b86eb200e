"""A model is made of what a client has seen: a known one's parameters come back; what cannot tell is refused."""

from collections.abc import Callable
from random import Random

import msgspec
import pytest

from withstand.errors import MeasureError
from withstand.record import Sample, Seen
from withstand.sim import Answer, Asked, Parameters, answers
from withstand.sim.fit import fit, predicted
from withstand.sim.rows import Heard, heard
from withstand.testing.records import make_failure, make_record

KNOWN = Parameters(
    step_ms=8,
    sequence_ms=0.7,
    prefill_token_ms=0.05,
    overhead_ms=2,
    prefix_caching=False,
    kv_blocks=512,
    max_sequences=64,
)


def slowed(answers_: list[Heard], by: float) -> list[Heard]:
    """Every second answer took so much longer, as where others use the machine."""
    return [
        msgspec.structs.replace(a, token_ns=tuple(round(a.first_ns + by * (t - a.first_ns)) for t in a.token_ns))
        if place % 2
        else a
        for place, a in enumerate(answers_)
    ]


def stage(rate_rps: float, count: int = 150, *, seed: int = 1, noise: float = 0.0, from_s: float = 0.0) -> list[Heard]:
    """Poisson arrivals, as the known engine answers them; each event is heard up to ``noise`` ms late."""
    random = Random(seed)
    at_s, asked = from_s, []
    for _ in range(count):
        at_s += random.expovariate(rate_rps)
        asked.append(
            Asked(at_ns=round(at_s * 1e9), prompt_tokens=random.randint(20, 900), output_tokens=random.randint(5, 60))
        )
    return _heard(answers(asked, KNOWN), lambda: round(random.random() * noise * 1e6))


def _heard(said: list[Answer], late_ns: Callable[[], int] = lambda: 0) -> list[Heard]:
    return [
        Heard(
            sent_ns=answer.asked.at_ns,
            token_ns=tuple(sorted(at_ns + late_ns() for at_ns in answer.at_ns)),
            prompt_tokens=answer.asked.prompt_tokens,
            whole_prompt_tokens=answer.asked.prompt_tokens,
            output_tokens=answer.asked.output_tokens,
        )
        for answer in said
    ]


def test_a_known_engine_gives_its_parameters_back() -> None:
    found = fit({"slow": stage(0.7, seed=2, noise=0.3), "fast": stage(8, seed=3, noise=0.3)})
    for name in ("step_ms", "sequence_ms", "prefill_token_ms", "overhead_ms"):
        coefficient = found.coefficients[name]
        known = getattr(KNOWN, name)
        room = 0.2 + 0.02 * known  # the stamps' noise is in them, and a step counts whole
        assert coefficient.low - room <= known <= coefficient.high + room, (name, coefficient)
        assert coefficient.value == pytest.approx(known, rel=0.1, abs=0.3)
    assert found.tpot_off is not None
    assert found.tpot_off < 0.05


def test_what_came_out_below_0_is_told_with_the_run_that_would_tell_it() -> None:
    """A prompt whose first token came as if sent before: no engine takes less than nothing."""
    early = [
        msgspec.structs.replace(a, token_ns=tuple(max(a.sent_ns + 1, t - 30_000_000) for t in a.token_ns))
        for a in stage(0.7, seed=2)
    ]
    found = fit({"slow": early, "fast": stage(8, seed=3)})
    assert found.coefficients["overhead_ms"].value < 0
    assert found.parameters.overhead_ms == 0
    (told,) = (notice for notice in found.notices if notice.startswith("overhead_ms"))
    assert "cannot be told" in told
    assert "--max-concurrency 1" in told


def test_a_stage_that_it_has_not_seen_is_foretold() -> None:
    found = fit({"slow": stage(0.7, seed=2), "middle": stage(4, seed=4), "fast": stage(8, seed=3)})
    assert [held.stage for held in found.held] == ["slow", "middle", "fast"]
    for held in found.held:
        assert held.ttft_said_ms == pytest.approx(held.ttft_ms, rel=0.1)
        assert held.tpot_said_ms == pytest.approx(held.tpot_ms, rel=0.05)
    truth = predicted("fast", stage(8, seed=3), KNOWN)
    assert (truth.ttft_said_ms, truth.tpot_said_ms) == pytest.approx((truth.ttft_ms, truth.tpot_ms))


def test_users_are_foretold_as_users() -> None:
    """At the instants of a faster engine they would queue behind one another, which no user does."""
    quick = Parameters(**{**msgspec.structs.asdict(KNOWN), "prefill_token_ms": 0.001, "step_ms": 1})
    found = _heard(answers([Asked(at_ns=0, prompt_tokens=500, output_tokens=20)] * 30, quick, users=1))
    alone = predicted("one", found[:1], KNOWN)
    assert predicted("one", found, KNOWN, users=1).ttft_said_ms == pytest.approx(alone.ttft_said_ms)
    assert predicted("one", found, KNOWN).ttft_said_ms > 1.5 * alone.ttft_said_ms


def test_the_servers_metrics_tell_slots_and_capacity() -> None:
    slow, fast = stage(0.7, seed=2, from_s=100), stage(8, seed=3)

    def held(at_ns: int) -> float:
        there = [a for a in fast if a.first_ns <= at_ns <= a.last_ns]
        return sum(
            a.whole_prompt_tokens + a.output_tokens * (at_ns - a.first_ns) / (a.last_ns - a.first_ns) for a in there
        )

    samples = [
        Sample(
            at_ns=at_ns,
            source="http://e",
            engine="vLLM",
            values={Seen.RUNNING: 6, Seen.WAITING: 1, Seen.KV_SHARE: held(at_ns) / KNOWN.kv_tokens},
        )
        for at_ns in range(5_000_000_000, 15_000_000_000, 250_000_000)
    ]
    found = fit({"slow": slow, "fast": fast}, samples).parameters
    assert found.max_sequences == 6
    assert found.kv_blocks == pytest.approx(KNOWN.kv_blocks, rel=0.15)


def _same(place: int) -> Heard:
    """One after another, all of one length: a step's own time and a sequence's cannot be told apart."""
    start_ns = place * 1_000_000_000
    return Heard(
        sent_ns=start_ns,
        token_ns=tuple(start_ns + 50_000_000 + i * 9_000_000 for i in range(20)),
        prompt_tokens=100,
        whole_prompt_tokens=100,
        output_tokens=20,
    )


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ({"one": stage(1, 10)}, "measure 20 or more"),
        ({"one": [_same(i) for i in range(60)]}, "always the same"),
        ({"one": slowed(stage(0.7, 25), 3), "two": slowed(stage(2, 25), 3)}, "something else seems to have used"),
    ],
)
def test_what_cannot_tell_is_refused(stages: dict[str, list[Heard]], said: str) -> None:
    with pytest.raises(MeasureError, match=said):
        fit(stages)


def test_only_good_streamed_answers_with_tokens_count() -> None:
    assert heard(make_record()) is not None
    assert heard(make_failure()) is None
    assert heard(make_record(streamed=False)) is None
    assert heard(make_record(output_tokens=None)) is None
    cached = heard(make_record(prompt_tokens=32, cached_tokens=16))
    assert cached is not None
    assert (cached.prompt_tokens, cached.whole_prompt_tokens) == (16, 32)
