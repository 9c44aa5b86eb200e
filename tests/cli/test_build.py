"""Options, a plan file and ``--set`` become one plan; what is typed wins, what is wrong is named."""

import copy
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from withstand.cli.build import build_plan
from withstand.errors import UsageError
from withstand.spec import Constant, Gamma, Inf, Plan, Poisson, Stage, Workload


def plan(from_file: dict[str, Any] | None = None, **options: Any) -> Plan:
    return build_plan(options, from_file or {})


def names(built: Plan) -> list[str]:
    return [stage.name for stage in built.stages]


def test_nothing_typed_is_the_default_plan() -> None:
    assert plan() == Plan(stages=(Stage(name="stage-1"),))


def test_every_simple_option_reaches_its_field() -> None:
    built = plan(
        base_url="http://127.0.0.1:1",
        backend="openai",
        endpoint="/x",
        model="m",
        api_key_env="KEY",
        cacert="ca.pem",
        insecure=True,
        dataset_name="sharegpt",
        dataset_path="s.json",
        num_prompts=7,
        tokenizer="tiktoken",
        input_len=512,
        output_len=64,
        seed=3,
        num_warmups=0,
        workers=2,
        fleet="ray://head:10001",
        output_dir="out",
        duration=30.0,
    )
    target, workload = built.target, built.workload
    assert (target.base_url, target.backend, target.endpoint) == ("http://127.0.0.1:1", "openai", "/x")
    assert (target.model, target.api_key_env, target.cacert, target.insecure) == ("m", "KEY", "ca.pem", True)
    assert (workload.dataset, workload.path, workload.num_prompts) == ("sharegpt", "s.json", 7)
    assert (workload.tokenizer, workload.options) == ("tiktoken", {"input_len": 512, "output_len": 64})
    assert (built.seed, built.num_warmups, built.workers, built.output_dir) == (3, 0, 2, "out")
    assert built.fleet == "ray://head:10001"
    assert [(s.num_prompts, s.duration_s) for s in built.stages] == [(7, 30.0)]


@pytest.mark.parametrize("named", [{"dataset": "random"}, {}])
def test_a_dataset_that_is_typed_takes_nothing_of_another_ones(named: dict[str, Any]) -> None:
    file = {"workload": {**named, "num_prompts": 5, "options": {"input_len": 64}}}
    assert plan(file, dataset_name="agent").workload == Workload(dataset="agent", num_prompts=5)
    assert plan(file, dataset_name="agent", set_path=['workload.options.kinds=["fact"]']).workload.options
    assert plan(file, dataset_name="random", output_len=8).workload.options == {"input_len": 64, "output_len": 8}
    assert plan({"workload": {"path": "s.json"}}, dataset_name="sharegpt").workload.path == "s.json"
    other = {"workload": {"dataset": "sharegpt", "path": "s.json"}}
    assert plan(other, dataset_name="random").workload.path is None


def test_several_rates_and_concurrencies_are_stages() -> None:
    assert names(plan(request_rate="1,2.5,inf")) == ["rate-1", "rate-2.5", "inf"]
    assert names(plan(max_concurrency="1, 8")) == ["concurrency-1", "concurrency-8"]
    both = plan(request_rate="4,inf", max_concurrency="2,8")
    assert names(both) == ["rate-4-concurrency-2", "rate-4-concurrency-8", "concurrency-2", "concurrency-8"]
    assert [(s.arrivals, s.max_concurrency) for s in both.stages] == [
        (Poisson(4.0), 2),
        (Poisson(4.0), 8),
        (Inf(), 2),
        (Inf(), 8),
    ]


def test_burstiness_shapes_the_arrivals() -> None:
    assert plan(request_rate="4", burstiness=1.0).stages[0].arrivals == Poisson(4.0)
    assert plan(request_rate="4", burstiness=0.5).stages[0].arrivals == Gamma(4.0, 0.5)


rates = st.floats(min_value=0.001, max_value=1e6).map(lambda rate: float(f"{rate:.6g}"))


@given(st.lists(rates, min_size=1, max_size=5, unique=True), st.lists(st.integers(1, 10**6), max_size=4, unique=True))
def test_the_product_has_every_pair_once(asked: list[float], caps: list[int]) -> None:
    built = plan(request_rate=",".join(map(repr, asked)), max_concurrency=",".join(map(str, caps)) if caps else None)
    pairs = [(s.arrivals, s.max_concurrency) for s in built.stages]
    assert pairs == [(Poisson(rate), cap) for rate in asked for cap in (caps or [None])]
    assert len(set(names(built))) == len(pairs)


@pytest.mark.parametrize("text", ["0", "-1", "abc", "nan", "", "1,,2", "-inf", "1;2", "4,4.0"])
def test_a_bad_rate_names_its_option(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--request-rate: "):
        plan(request_rate=text)


@pytest.mark.parametrize("text", ["0", "-1", "abc", "1.5", "inf", "", "8,8", "²"])
def test_a_bad_concurrency_names_its_option(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--max-concurrency: "):
        plan(max_concurrency=text)


@pytest.mark.parametrize(
    "options",
    [
        {"burstiness": 0.0, "request_rate": "1"},
        {"burstiness": math.nan, "request_rate": "1"},
        {"burstiness": math.inf, "request_rate": "1"},
        {"burstiness": 2.0},
        {"burstiness": 2.0, "request_rate": "inf"},
    ],
)
def test_a_burstiness_that_means_nothing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"^--burstiness"):
        plan(**options)


def test_goodput() -> None:
    slo = plan(goodput=("ttft:500", "tpot:50.5")).goodput
    assert (slo.ttft, slo.tpot, slo.e2el) == (500.0, 50.5, None)


@pytest.mark.parametrize("text", ["ttft", "ttft:", "ttft:abc", "ttft:0", "ttft:nan", "ttft:inf", "itl:5", ":5"])
def test_a_bad_goodput_names_its_option(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--goodput: "):
        plan(goodput=(text,))


def test_headers_are_written_either_way() -> None:
    built = plan(header=("X-Team=a=b", "Authorization: Basic x:y"))
    assert built.target.headers == {"X-Team": "a=b", "Authorization": "Basic x:y"}


def test_a_bad_header_is_not_repeated_for_it_may_be_a_secret() -> None:
    with pytest.raises(UsageError, match=r"^--header: ") as caught:
        plan(header=("sesame open",))
    assert "sesame" not in str(caught.value)


# The plan file below, the options above it, --set on top.

FILE = {
    "seed": 1,
    "target": {"model": "of-file", "headers": {"X-A": "1"}},
    "workload": {"num_prompts": 50, "options": {"input_len": 10, "range_ratio": 0.5}},
    "goodput": {"ttft": 100.0, "share": 0.9},
    "stages": [
        {"name": "warm", "warmup": True, "num_prompts": 3},
        {"name": "a", "num_prompts": 40, "workload": {"dataset": "synthetic"}},
        {"name": "b", "arrivals": {"kind": "constant", "rate": 2}, "duration_s": 9},
    ],
}


def test_what_is_typed_wins_and_the_rest_stays() -> None:
    built = plan(FILE, model="typed", header=("X-B=2",), input_len=99, goodput=("tpot:9",), num_prompts=5)
    assert built.target.model == "typed"
    assert built.target.headers == {"X-A": "1", "X-B": "2"}
    assert built.workload.options == {"input_len": 99, "range_ratio": 0.5}
    assert (built.goodput.ttft, built.goodput.tpot, built.goodput.share, built.seed) == (100.0, 9.0, 0.9, 1)
    assert [(s.name, s.num_prompts) for s in built.stages] == [("warm", 3), ("a", 5), ("b", 5)]


def test_a_stage_with_a_workload_of_its_own_obeys_too() -> None:
    own = plan(FILE, dataset_name="sharegpt", dataset_path="s.json").stages[1].workload
    assert own is not None
    assert (own.dataset, own.path) == ("sharegpt", "s.json")


def test_typed_loads_take_the_place_of_the_files_stages() -> None:
    assert names(plan(FILE, request_rate="1,2")) == ["rate-1", "rate-2"]


def test_a_single_stage_of_the_file_is_the_pattern() -> None:
    one = {"stages": [{"name": "x", "arrivals": {"kind": "constant", "rate": 2}, "duration_s": 9, "phase": "p"}]}
    built = plan(one, max_concurrency="1,2")
    assert [(s.name, s.arrivals, s.max_concurrency, s.duration_s, s.phase) for s in built.stages] == [
        ("concurrency-1", Constant(2.0), 1, 9.0, "p"),
        ("concurrency-2", Constant(2.0), 2, 9.0, "p"),
    ]


def test_set_comes_last_and_reaches_into_stages() -> None:
    built = plan(FILE, request_rate="4,8", seed=2, set_path=("stages.1.max_concurrency=4", "seed=3"))
    assert [s.max_concurrency for s in built.stages] == [None, 4]
    assert built.seed == 3
    assert plan(set_path=("stages.0.max_concurrency=4",)).stages[0].max_concurrency == 4


def test_the_files_tree_is_left_as_it_was() -> None:
    before = copy.deepcopy(FILE)
    plan(FILE, model="typed", header=("X-B=2",), input_len=1, num_prompts=9, set_path=("stages.1.name=z",))
    assert before == FILE


@pytest.mark.parametrize(
    "tree", [{"stages": 5}, {"stages": [5]}, {"target": []}, {"workload": {"options": 1}}, {"nonsense": 1}]
)
def test_a_file_of_another_shape_is_refused_with_the_path(tree: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="The plan is wrong"):
        plan(tree, request_rate="1", num_prompts=3, header=("A=b",))
