"""Arrival processes in virtual time: their statistics, their integrals, their seeds."""

import itertools
import math
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.errors import SpecError
from withstand.spec import Arrivals, Constant, Gamma, Inf, Poisson, Ramp, Step, StepPart, Trace
from withstand.workload.arrivals import due_times_ns


def first(arrivals: Arrivals, count: int, seed: str = "0/x") -> list[float]:
    """The first due times, in seconds."""
    return [t / 1e9 for t in itertools.islice(due_times_ns(arrivals, seed), count)]


def gaps(times: list[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise([0.0, *times])]


def test_constant_does_not_drift_in_a_million() -> None:
    last = next(itertools.islice(due_times_ns(Constant(300.0), "0"), 999_999, None))
    assert last == round(999_999 / 300 * 1e9)


def test_poisson_has_the_mean_and_the_variance_of_an_exponential() -> None:
    found = gaps(first(Poisson(50.0), 40_000))
    assert fmean(found) == pytest.approx(0.02, rel=0.02)
    assert pstdev(found) == pytest.approx(0.02, rel=0.03)


def test_poisson_counts_have_their_own_variance() -> None:
    """Requests in a second: mean = variance. A draw stretched to hit N / rate would have too little."""
    times = first(Poisson(20.0), 60_000)
    counts = [0] * int(times[-1])
    for second in map(int, times):
        if second < len(counts):
            counts[second] += 1
    assert fmean(counts) == pytest.approx(20, rel=0.02)
    assert pstdev(counts) ** 2 == pytest.approx(20, rel=0.08)


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gamma_has_the_coefficient_of_variation_of_its_burstiness(burstiness: float) -> None:
    found = gaps(first(Gamma(10.0, burstiness), 60_000))
    assert fmean(found) == pytest.approx(0.1, rel=0.04)
    assert pstdev(found) / fmean(found) == pytest.approx(1 / math.sqrt(burstiness), rel=0.05)


@pytest.mark.parametrize("shape", ["linear", "exponential"])
@pytest.mark.parametrize(("start", "end"), [(2.0, 40.0), (40.0, 2.0), (5.0, 5.0)])
def test_an_even_ramp_holds_its_integral_everywhere(shape: str, start: float, end: float) -> None:
    ramp = Ramp(start, end, 10.0, shape=shape, poisson=False)

    def integral(t: float) -> float:
        if t > ramp.duration_s:
            return integral(ramp.duration_s) + (t - ramp.duration_s) * end
        if shape == "linear" or start == end:
            return start * t + (end - start) * t * t / 2 / ramp.duration_s
        k = math.log(end / start) / ramp.duration_s
        return start * math.expm1(k * t) / k

    for i, t in enumerate(first(ramp, 400)):
        assert integral(t) == pytest.approx(i, abs=1e-5)


def test_a_poisson_ramp_has_the_integral_as_its_mean() -> None:
    counts = [sum(t < 10 for t in first(Ramp(0.0, 40.0, 10.0), 400, seed=f"{i}/x")) for i in range(200)]
    assert fmean(counts) == pytest.approx(200, rel=0.02)
    assert pstdev(counts) ** 2 == pytest.approx(200, rel=0.25)


def test_steps_pause_and_end() -> None:
    step = Step((StepPart(10.0, 1.0), StepPart(0.0, 5.0), StepPart(2.0, 2.0)), poisson=False)
    times = [t / 1e9 for t in due_times_ns(step, "0")]
    assert times == pytest.approx([i / 10 for i in range(10)] + [6.0, 6.5, 7.0, 7.5])


def test_inf_is_all_at_once() -> None:
    assert first(Inf(), 3) == [0, 0, 0]


def test_trace_has_no_times_of_its_own() -> None:
    with pytest.raises(SpecError, match="dataset with times"):
        due_times_ns(Trace(), "0")


def test_an_exponential_ramp_cannot_begin_at_nothing() -> None:
    with pytest.raises(SpecError, match="start_rate"):
        first(Ramp(0.0, 5.0, 1.0, shape="exponential"), 1)


processes = st.one_of(
    st.builds(Constant, st.floats(0.01, 1e4)),
    st.builds(Poisson, st.floats(0.01, 1e4)),
    st.builds(Gamma, st.floats(0.01, 1e4), st.floats(0.05, 20)),
    st.builds(Ramp, st.floats(0.1, 100), st.floats(0.1, 100), st.floats(0.1, 100)),
)


@given(arrivals=processes, seed=st.text(max_size=5))
def test_times_never_decrease_and_the_seed_decides(arrivals: Arrivals, seed: str) -> None:
    times = first(arrivals, 50, seed)
    assert times == sorted(times)
    assert times == first(arrivals, 50, seed)
