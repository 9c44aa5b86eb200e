"""The plans that come along are plans like any other; what they leave open is decided from what was seen."""

from typing import Any

import msgspec
import pytest

from compared import stage as summary_of
from withstand.app.fitting import tokens_of, too_long
from withstand.app.plans import NAMES, listing, ready_made
from withstand.app.rates import decided
from withstand.app.stages import all_stages
from withstand.errors import AwayError, UsageError
from withstand.load.address import parse_address
from withstand.load.ask import served_context
from withstand.metrics.summary import StageSummary
from withstand.spec import Gamma, Plan, Poisson, Rates, Stage, Workload, parse_plan


@pytest.mark.parametrize("name", NAMES)
def test_each_can_be_read_warms_up_ends_by_time_and_says_what_it_is_for(name: str) -> None:
    plan = parse_plan(ready_made(name))
    stages = all_stages(plan)
    assert [stage.warmup for stage in stages].count(True) == 1
    assert stages[0].warmup
    assert all(stage.duration_s or stage.num_prompts for stage in stages)
    assert {rates.of for rates in plan.rates} <= {stage.phase for stage in stages}
    assert f"{name} (" in listing()
    assert "\n    For " in listing().partition(f"{name} (")[2]


def test_the_standard_one_has_the_four_phases() -> None:
    plan = parse_plan(ready_made("standard"))
    phases = dict.fromkeys(stage.phase for stage in plan.stages)
    assert [*phases, *(rates.phase for rates in plan.rates)] == ["warm-up", "baseline", "concurrency", "sustained"]
    assert [s.name for s in plan.stages if s.phase == "baseline"] == ["in-32", "in-64", "in-128", "in-256", "in-512"]


def test_an_unknown_one_is_refused_with_the_names_of_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"'nope' is unknown; choose one of standard, .*soak"):
        ready_made("nope")


# Rates.


def seen(stage: Stage, rate_rps: float | None) -> StageSummary:
    return msgspec.structs.replace(summary_of([]), name=stage.name, phase=stage.phase, request_throughput=rate_rps)


SLOW = Stage(name="one", phase="concurrency", workload=Workload(dataset="random"))
FAST = Stage(name="two", phase="concurrency", workload=Workload(dataset="synthetic"))


def test_shares_of_the_most_that_was_seen_to_two_digits_with_its_workload() -> None:
    plan = Plan(rates=(Rates(shares=(0.5, 1.2), duration_s=9),))
    low, high = decided(plan, [SLOW, FAST], [seen(SLOW, 3.33), seen(FAST, 12.34)])
    assert (low.name, low.arrivals, low.phase, low.duration_s) == ("rate-6.2", Poisson(6.2), "sustained", 9)
    assert (high.name, high.arrivals) == ("rate-15", Poisson(15.0))
    assert low.workload == high.workload == FAST.workload


def test_they_are_shortened_so_that_their_last_answers_are_waited_for() -> None:
    plan = Plan(rates=(Rates(shares=(0.5, 1.5), duration_s=20),))
    e2el = msgspec.structs.replace(summary_of([]).e2el, mean=10_000.0)
    done = [msgspec.structs.replace(seen(FAST, 2.0), e2el=e2el)]
    for left_s, duration_s in ((None, 20), (70, 20), (45, 10), (0, 2)):  # 20 s for answers, 2.5 times 20 s for the rest
        assert {stage.duration_s for stage in decided(plan, [FAST], done, left_s)} == {duration_s}


def test_nothing_is_decided_twice_or_from_nothing() -> None:
    plan = Plan(rates=(Rates(shares=(0.5,), duration_s=9),))
    done = [seen(FAST, 10.0)]
    assert decided(plan, [FAST, Stage(name="rate-5", phase="sustained")], done) == []
    assert decided(plan, [FAST], [seen(FAST, None)]) == []
    assert decided(plan, [FAST], []) == []
    assert decided(Plan(), [FAST], done) == []


def test_shares_that_round_to_the_same_are_one_stage_and_names_stay_unique() -> None:
    rates = Rates(shares=(0.5, 0.501), duration_s=9)
    taken = Stage(name="rate-5", phase="concurrency")
    (stage,) = decided(Plan(rates=(rates,)), [FAST, taken], [seen(FAST, 10.0)])
    assert stage.name == "sustained rate-5"
    bursts = Rates(shares=(0.5,), duration_s=9, phase="bursts", burstiness=0.25)
    (stage,) = decided(Plan(rates=(bursts,)), [FAST], [seen(FAST, 10.0)])
    assert (stage.name, stage.arrivals) == ("bursts rate-5", Gamma(5.0, 0.25))


# Lengths.


@pytest.mark.parametrize(
    ("dataset", "options", "tokens"),
    [
        ("synthetic", {"input_len": 8000, "output_len": 100}, 8100),
        ("random", {"input_len": 100, "output_len": 50, "prefix_len": 10, "range_ratio": 0.1}, 175),
        ("prefix-repetition", {"prefix_len": 10, "suffix_len": 20, "output_len": 5}, 35),
        ("conversations", {"system_len": 100, "first_len": 10, "later_len": 5, "turns": 3, "output_len": 7}, 141),
        ("sharegpt", {}, None),
    ],
)
def test_the_tokens_of_the_longest_request(dataset: str, options: dict[str, Any], tokens: int | None) -> None:
    stage = Stage(workload=Workload(dataset=dataset, options=options))
    assert tokens_of(stage) == tokens
    assert not too_long(stage, None)
    assert too_long(stage, tokens) is (tokens is not None)
    assert not too_long(stage, 10_000)


class Told:
    """Stands for an endpoint's list of models."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.answer = (status, body)
        self.props = (404, b"")

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        assert method == "GET"
        return self.answer if path == "/v1/models" else self.props


def test_llama_cpp_of_older_versions_says_it_elsewhere() -> None:
    told = Told(b'{"data":[{"id":"m","meta":{"n_ctx_train":8192}}]}')
    told.props = (200, b'{"default_generation_settings":{"n_ctx":2048},"total_slots":1}')
    assert served_context(told, parse_address("http://127.0.0.1:1"), "m") == 2048


def test_a_server_that_hangs_up_on_pages_that_it_does_not_know_does_not_say() -> None:
    class HangsUp(Told):
        def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
            if path == "/props":
                raise AwayError("GET /props was not answered.")
            return super().ask(method, path, body)

    assert served_context(HangsUp(b'{"data":[{"id":"m"}]}'), parse_address("http://127.0.0.1:1"), "m") is None


@pytest.mark.parametrize(
    ("body", "context"),
    [
        (b'{"data":[{"id":"a","max_model_len":5},{"id":"m","max_model_len":4096}]}', 4096),
        (b'{"data":[{"id":"m","context_length":2048}]}', 2048),
        (b'{"data":[{"id":"m","meta":{"n_ctx":512,"n_ctx_train":8192}}]}', 512),
        (b'{"data":[{"id":"other","max_model_len":5}]}', None),
        (b'{"data":[{"id":"m"}]}', None),
        (b'{"data":[{"id":"m","max_model_len":"much"}]}', None),
        (b'{"data":5}', None),
        (b"<html>", None),
    ],
)
def test_how_endpoints_say_how_much_they_take(body: bytes, context: int | None) -> None:
    address = parse_address("http://127.0.0.1:1")
    assert served_context(Told(body), address, "m") == context
    assert served_context(Told(body, 404), address, "m") is None
