"""Looks at power → joules: exact where power is known, and none where nobody looked."""

from collections.abc import Sequence
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.metrics.energy import Energy, Work, counted, energy_of, integrated
from withstand.metrics.gpus import in_use, serving
from withstand.metrics.server import Watched, server_side
from withstand.record import HOST, Sample, Seen

S = 1_000_000_000
SPAN = (10 * S, 20 * S)
WORK = Work(SPAN, output_tokens=1000, answers=50)
REMOTE = "http://node:9400/metrics node/gpu0"


def looks(source: str, seen: Seen, points: Sequence[tuple[float, float]], **others: float) -> list[Sample]:
    values = {Seen(name): value for name, value in others.items()}
    return [Sample(at_ns=round(at * S), source=source, values={seen: value, **values}) for at, value in points]


def steady(source: str, watts: float, **others: float) -> list[Sample]:
    return looks(source, Seen.GPU_WATTS, [(at, watts) for at in range(9, 22)], **others)


def counter(source: str, watts: float, **others: float) -> list[Sample]:
    return looks(source, Seen.GPU_JOULES, [(at, 5e6 + watts * at) for at in range(9, 22)], **others)


def energy(*samples: list[Sample], beside_server: bool = True) -> Energy:
    found = energy_of([one for some in samples for one in some], WORK, beside_server=beside_server)
    assert found is not None
    return found


def test_two_gpus_of_steady_power() -> None:
    found = energy(steady("gpu0", 300), steady("gpu1", 100))
    assert (found.joules, found.mean_watts, found.by) == (pytest.approx(4000), pytest.approx(400), "power")
    assert found.per_output_token_j == pytest.approx(4)
    assert found.per_request_j == pytest.approx(80)
    assert found.kwh_per_million_output == pytest.approx(4e6 / 3.6e6)
    assert found.notes == ()


def test_a_counter_goes_before_power() -> None:
    found = energy(steady("gpu0", 300), counter("gpu0", 250))
    assert (found.joules, found.by) == (pytest.approx(2500), "counter")
    both = energy(steady("gpu0", 300), counter("gpu1", 250))
    assert (both.joules, both.by) == (pytest.approx(5500), "power")


def test_a_counter_that_began_anew_is_none() -> None:
    points = [(at, 100.0 * (at % 13)) for at in range(9, 22)]
    assert counted([(at * S, joules) for at, joules in points], SPAN) is None
    assert energy(looks("gpu0", Seen.GPU_JOULES, points), steady("gpu0", 300)).by == "power"


def test_a_counter_counts_through_a_gap_and_power_does_not() -> None:
    at = (9.0, 9.9, 10.1, 10.6, 11.0, 19.0, 19.9, 20.1, 21.0)
    assert energy(looks("gpu0", Seen.GPU_JOULES, [(t, 100 * t) for t in at])).joules == pytest.approx(1000)
    power = energy(looks("gpu0", Seen.GPU_WATTS, [(t, 100.0) for t in at]))
    assert power.joules is None
    assert power.mean_watts is None
    assert power.notes == (
        "gpu0: no look for 8.0 s, 1.0 s after the start",
        "gpu0: 8.0 of 10.0 s were not seen, so there is no number",
    )


@pytest.mark.parametrize("at", [range(9, 14), range(16, 22), (9, 21)])
def test_looks_that_do_not_lie_about_the_stage_give_no_number(at: Sequence[int]) -> None:
    assert energy(looks("gpu0", Seen.GPU_WATTS, [(t, 100.0) for t in at])).joules is None


def test_one_gpu_of_which_nothing_is_known_takes_the_sum_with_it() -> None:
    found = energy(steady("gpu0", 300), looks("gpu1", Seen.GPU_SHARE, [(11, 0.5), (12, 0.5)]))
    assert found.joules is None
    assert found.notes == ("gpu1: 0 looks at its power within 10.0 s are too few for a number",)


def test_who_neither_works_nor_holds_memory_does_not_count() -> None:
    found = energy(
        steady("gpu0", 300, gpu_share=0.9),
        steady("gpu1", 200, gpu_share=0.0, gpu_memory_share=0.8),
        steady("gpu2", 60, gpu_share=0.0, gpu_memory_share=0.01),
    )
    assert (found.gpus, found.gpus_seen, found.joules) == (2, 3, pytest.approx(5000))


def test_an_exporter_s_gpus_take_the_place_of_this_machine_s() -> None:
    local, remote = steady("gpu0", 300, gpu_share=0.5), steady(REMOTE, 100, gpu_share=0.5)
    assert energy(local, remote).joules == pytest.approx(1000)
    assert energy(local, remote, beside_server=False).joules == pytest.approx(1000)
    assert energy_of(local, WORK, beside_server=False) is None, "the server is elsewhere"
    watched = Watched((*local, *remote), *SPAN, beside_server=False)
    seen = server_side(watched)
    assert seen is not None
    assert seen.gpus == 1
    assert seen.gpu_watts is not None
    assert seen.gpu_watts.max == 100


def test_cpu_packages_are_told_apart() -> None:
    cpu = looks(HOST, Seen.CPU_JOULES, [(at, 40.0 * at) for at in range(9, 22)])
    found = energy(cpu, steady("gpu0", 300))
    assert (found.cpu_joules, found.joules) == (pytest.approx(400), pytest.approx(3000))
    assert found.cpu_per_output_token_j == pytest.approx(0.4)
    alone = energy(cpu)
    assert (alone.gpus, alone.joules, alone.cpu_joules) == (0, None, pytest.approx(400))
    assert energy_of(cpu, WORK, beside_server=False) is None


def test_without_any_power_nothing_is_known() -> None:
    assert energy_of(looks(HOST, Seen.CPU_SHARE, [(12, 0.5)]), WORK, beside_server=True) is None
    assert energy_of([], WORK, beside_server=True) is None


STEPS = st.lists(st.floats(0.2, 1.5), min_size=10, max_size=10)


def instants(steps_s: Sequence[float]) -> list[float]:
    """From 7 s until well after the stage, apart as told and then a second."""
    at = [7.0]
    for step_s in (*steps_s, *[1.0] * 20):
        at.append(at[-1] + step_s)
    return at


@given(STEPS, st.floats(1, 100), st.floats(1, 1000))
def test_load_that_begins_and_ends_at_once_is_known_exactly(steps_s: list[float], idle: float, load: float) -> None:
    """Whenever one looks: by the counter, and by power that is of the instant."""
    begin, end = (ns / S for ns in SPAN)

    def taken(at: float) -> float:
        loaded = min(max(at - begin, 0.0), end - begin)
        return idle * (at - loaded) + load * loaded

    at = instants(steps_s)
    assert counted([(round(t * S), taken(t)) for t in at], SPAN) == pytest.approx(10 * load, rel=1e-6)
    power = [(round(t * S), load if begin <= t <= end else idle) for t in at]
    assert integrated(power, SPAN) == (pytest.approx(10 * load), ())


@given(STEPS, st.lists(st.floats(0, 1000), min_size=31, max_size=31))
def test_no_energy_without_power(steps_s: list[float], watts: list[float]) -> None:
    points = [(round(at * S), w) for at, w in zip(instants(steps_s), watts, strict=True)]
    inner = [w for at_ns, w in points if SPAN[0] < at_ns < SPAN[1]]
    joules, notes = integrated(points, SPAN)
    assert notes == ()
    assert joules is not None
    assert 10 * min(inner) - 1e-6 <= joules <= 10 * max(inner) + 1e-6


@given(STEPS, st.lists(st.floats(0, 1000), min_size=31, max_size=31))
def test_a_counter_gains_no_less_than_between_looks_within_and_no_more_than_between_those_about(
    steps_s: list[float], gains: list[float]
) -> None:
    points = [(round(at * S), j) for at, j in zip(instants(steps_s), accumulate(gains), strict=True)]
    joules = counted(points, SPAN)
    assert joules is not None
    inner = [j for at_ns, j in points if SPAN[0] < at_ns < SPAN[1]]
    about = [j for at_ns, j in points if at_ns <= SPAN[0]][-1:] + [j for at_ns, j in points if at_ns >= SPAN[1]][:1]
    assert inner[-1] - inner[0] - 1e-6 <= joules <= about[1] - about[0] + 1e-6


def test_gpus_of_whom_nobody_tells_more_are_in_use() -> None:
    assert in_use(serving(steady("gpu0", 50), beside_server=True)) == ["gpu0"]
