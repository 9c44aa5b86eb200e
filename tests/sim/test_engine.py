"""The model of an engine holds what a queue must hold, whatever comes: in virtual time."""

from collections.abc import Iterator
from random import Random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from withstand.sim import Asked, Engine, Job, Parameters, Step, answers

SMALL = st.builds(
    Parameters,
    step_ms=st.floats(0, 5),
    sequence_ms=st.floats(0, 2),
    prefill_token_ms=st.floats(0, 1),
    max_sequences=st.integers(1, 6),
    max_batched_tokens=st.integers(1, 40),
    chunked_prefill=st.booleans(),
    block_tokens=st.integers(1, 8),
    kv_blocks=st.integers(8, 30),
    prefix_caching=st.booleans(),
)
SIZES = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12), st.integers(0, 2)), min_size=1, max_size=12)


def jobs(sizes: list[tuple[int, int, int]], parameters: Parameters) -> list[Job]:
    """The third number is the family: those of one share their prompt as far as it goes."""
    engine = Engine(parameters)
    made = [
        Job(
            number=number,
            prompt_tokens=prompt,
            output_tokens=output,
            hashes=tuple((family, block) for block in range(prompt // parameters.block_tokens)),
        )
        for number, (prompt, output, family) in enumerate(sizes)
    ]
    return [job for job in made if engine.fits(job)]


def steps(engine: Engine) -> Iterator[tuple[Step, list[Job]]]:
    """Until there is nothing to do."""
    now_ns = 0
    while step := engine.begin(now_ns):
        now_ns = step.ends_ns
        yield step, engine.finish(step)


@settings(deadline=None, max_examples=150)
@given(SMALL, SIZES)
def test_every_token_is_said_once_and_the_cache_never_holds_more_than_it_can(
    parameters: Parameters, sizes: list[tuple[int, int, int]]
) -> None:
    engine = Engine(parameters)
    wanted = jobs(sizes, parameters)
    for job in wanted:
        engine.add(job)
    said = dict.fromkeys((job.number for job in wanted), 0)
    for step, heard in steps(engine):
        assert step.ends_ns > step.started_ns
        assert len(engine.running) <= parameters.max_sequences
        assert 0 <= engine.blocks.used <= parameters.kv_blocks
        assert engine.blocks.used + engine.blocks.available == parameters.kv_blocks
        for job in heard:
            said[job.number] += 1
    assert said == {job.number: job.output_tokens for job in wanted}  # so it never stood still with work to do
    assert (len(engine.running), len(engine.waiting), engine.blocks.used) == (0, 0, 0)


@settings(deadline=None, max_examples=100)
@given(SMALL, SIZES)
def test_who_comes_first_is_taken_first(parameters: Parameters, sizes: list[tuple[int, int, int]]) -> None:
    engine = Engine(parameters)
    wanted = jobs(sizes, parameters)
    for job in wanted:
        engine.add(job)
    for _ in steps(engine):
        pass
    begun = [job.begun_ns for job in wanted]
    assert None not in begun
    assert begun == sorted(begun, key=lambda ns: ns or 0)


@settings(deadline=None, max_examples=100)
@given(SMALL, SIZES, st.data())
def test_who_leaves_takes_nothing_along(
    parameters: Parameters, sizes: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    engine = Engine(parameters)
    wanted = jobs(sizes, parameters)
    for job in wanted:
        engine.add(job)
    for step, _ in steps(engine):
        assert step
        gone = data.draw(st.sampled_from(wanted)) if wanted and data.draw(st.booleans()) else None
        if gone:
            engine.drop(gone)
    assert engine.blocks.used == 0


@settings(deadline=None, max_examples=100)
@given(SMALL, SIZES, st.integers(1, 4))
def test_users_ask_again_when_they_are_answered(
    parameters: Parameters, sizes: list[tuple[int, int, int]], users: int
) -> None:
    asked = [
        Asked(at_ns=0, prompt_tokens=job.prompt_tokens, output_tokens=job.output_tokens)
        for job in jobs(sizes, parameters)
    ]
    said = answers(asked, parameters, users)
    assert [len(answer.at_ns) for answer in said] == [each.output_tokens for each in asked]
    ends = sorted(answer.at_ns[-1] for answer in said)
    assert sorted(answer.asked.at_ns for answer in said) == ([0] * users + ends)[: len(said)]


def test_a_step_takes_what_its_batch_makes_it() -> None:
    parameters = Parameters(step_ms=10, sequence_ms=1, prefill_token_ms=0.5, max_batched_tokens=100)
    (alone,) = answers([Asked(at_ns=0, prompt_tokens=40, output_tokens=3)], parameters)
    assert alone.at_ns == (30_000_000, 41_000_000, 52_000_000)
    two = answers([Asked(at_ns=0, prompt_tokens=40, output_tokens=3)] * 2, parameters)
    assert two[0].at_ns == two[1].at_ns == (50_000_000, 62_000_000, 74_000_000)


def test_a_long_prompt_comes_in_chunks_and_lets_others_speak() -> None:
    parameters = Parameters(step_ms=1, sequence_ms=0, prefill_token_ms=1, max_batched_tokens=10)
    first, second = answers(
        [Asked(at_ns=0, prompt_tokens=1, output_tokens=8), Asked(at_ns=1, prompt_tokens=27, output_tokens=1)],
        parameters,
    )
    assert first.tpot_ns is not None
    assert second.at_ns[0] == (2 + 10 + 10 + 10) * 1_000_000  # nine of the prompt beside each token: 27 in three steps
    whole = answers([first.asked, second.asked], Parameters(**{**_of(parameters), "chunked_prefill": False}))
    assert whole[1].at_ns[0] == (2 + 1 + 27) * 1_000_000
    assert whole[0].at_ns[1] == (2 + 1 + 27 + 1) * 1_000_000


def _of(parameters: Parameters) -> dict[str, object]:
    return {name: getattr(parameters, name) for name in parameters.__struct_fields__}


def test_a_prefix_that_is_there_is_not_computed_again() -> None:
    parameters = Parameters(step_ms=1, sequence_ms=0, prefill_token_ms=1, block_tokens=4, kv_blocks=20)
    asked = [Asked(at_ns=at, prompt_tokens=9, output_tokens=1, hashes=("a", "b")) for at in (0, 100_000_000)]
    assert [answer.ttft_ns for answer in answers(asked, parameters)] == [10_000_000, 2_000_000]
    asked[1] = Asked(at_ns=100_000_000, prompt_tokens=8, output_tokens=1, hashes=("a", "b"))
    assert answers(asked, parameters)[1].ttft_ns == 5_000_000  # one token is always computed, and with it its block


def test_the_prefix_that_was_left_the_longest_ago_goes_first() -> None:
    parameters = Parameters(step_ms=1, sequence_ms=0, prefill_token_ms=1, block_tokens=4, kv_blocks=5)
    order = ["a", "b", "a", "c", "a", "b"]
    asked = [
        Asked(at_ns=i * 100_000_000, prompt_tokens=5, output_tokens=1, hashes=(name,)) for i, name in enumerate(order)
    ]
    full = Parameters(**{**_of(parameters), "kv_blocks": 3})
    assert [a.ttft_ns // 1_000_000 for a in answers(asked, parameters)] == [6, 6, 2, 6, 2, 2]
    assert [a.ttft_ns // 1_000_000 for a in answers(asked, full)] == [6, 6, 2, 6, 2, 6]


def test_no_room_for_the_next_token_costs_the_last_one_its_place() -> None:
    parameters = Parameters(block_tokens=1, kv_blocks=10, prefix_caching=False)
    engine = Engine(parameters)
    for number in range(2):
        engine.add(Job(number=number, prompt_tokens=4, output_tokens=6))
    said = [job.number for _, heard in steps(engine) for job in heard]
    assert engine.preemptions == 1
    assert sorted(said) == [0] * 6 + [1] * 6
    assert said[-1] == 1


@pytest.mark.parametrize("utilisation", [0.3, 0.7])
def test_one_at_a_time_it_waits_as_m_d_1_says(utilisation: float) -> None:
    """Pollaczek and Khinchin: the mean wait is rho / (2 (1 - rho)) services."""
    random = Random(7)
    at_s, asked = 0.0, []
    for _ in range(40_000):
        at_s += random.expovariate(utilisation / 0.01)
        asked.append(Asked(at_ns=round(at_s * 1e9), prompt_tokens=1, output_tokens=1))
    parameters = Parameters(step_ms=10, sequence_ms=0, prefill_token_ms=0, max_sequences=1)
    wait_s = fmean(answer.ttft_ns for answer in answers(asked, parameters)) / 1e9 - 0.01
    assert wait_s == pytest.approx(0.01 * utilisation / (2 * (1 - utilisation)), rel=0.1)
