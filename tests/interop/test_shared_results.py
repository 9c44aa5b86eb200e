"""Real files of everybody: every value of the index, every inconsistency, and the documents that started all this."""

from typing import Any

import pytest

from expected import RESULTS, index, values_of
from shared import shared
from withstand.interop.checks import joint_doubts, run_doubts
from withstand.interop.read import read_path
from withstand.metrics.doubts import DoubtKind

ENTRIES = index() if (RESULTS / "INDEX.json").exists() else []


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry["file"] for entry in ENTRIES])
def test_every_expected_value_is_read(entry: dict[str, Any]) -> None:
    shared("results/INDEX.json")
    found = values_of(entry)
    assert found
    assert [value for value in found if not value.met] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry["file"] for entry in ENTRIES])
def test_every_listed_inconsistency_is_found(entry: dict[str, Any]) -> None:
    listed = entry["expected"] if isinstance(entry["expected"], list) else []
    wanted = {i: item["inconsistencies"] for i, item in enumerate(listed) if item.get("inconsistencies")}
    runs = read_path(RESULTS / entry["file"]).runs if wanted else ()
    for i, texts in wanted.items():
        raised = {doubt.kind for doubt in run_doubts(runs[i])}
        for text in texts:
            kind = DoubtKind.TPOT_AGAINST_ITL if "TPOT" in text else DoubtKind.CLAIMED_NOT_COUNTED
            assert kind in raised, text


def kinds(name: str) -> list[set[DoubtKind]]:
    return [{doubt.kind for doubt in run_doubts(run)} for run in read_path(shared(f"seeds/{name}")).runs]


def test_half_of_the_requests_are_missing_and_two_rates_were_not_achieved() -> None:
    runs = read_path(shared("seeds/seed000_results.jsonl")).runs
    raised = {run.conditions.labels.get("framework", "") + f" {run.conditions.request_rate}": set() for run in runs}
    by_rate: dict[object, list[set[DoubtKind]]] = {}
    for run, found in zip(runs, kinds("seed000_results.jsonl"), strict=True):
        by_rate.setdefault(run.conditions.request_rate, []).append(found)
    assert len(raised) == len(runs) == 12
    assert all(DoubtKind.FEWER_THAN_ASKED in found for found in by_rate[None])
    assert all(DoubtKind.RATE_NOT_ACHIEVED in found for rate in (30.0, 35.0) for found in by_rate[rate])
    assert not any(DoubtKind.RATE_NOT_ACHIEVED in found for rate in (1.0, 10.0, 20.0) for found in by_rate[rate])
    assert {run.conditions.engine for run in runs} == {"vllm", "sgl"}
    assert DoubtKind.CLIENT_LIMIT in {doubt.kind for doubt in joint_doubts(runs)}


def test_three_gateways_did_not_do_the_same_work() -> None:
    runs = read_path(shared("seeds/seed003_raw.txt")).runs
    assert [run.conditions.labels.get("heading") for run in runs[1:]] == ["Rust", "golang"]
    python, rust, golang = kinds("seed003_raw.txt")
    assert {DoubtKind.CLAIMED_NOT_COUNTED, DoubtKind.TPOT_AGAINST_ITL, DoubtKind.EVENTS_AGAINST_TOKENS} <= python
    assert DoubtKind.CLAIMED_NOT_COUNTED in golang - rust
    assert all(DoubtKind.RATE_NOT_ACHIEVED in found for found in (python, rust, golang))
    assert [doubt.kind for doubt in joint_doubts(runs)] == [DoubtKind.LENGTHS_DIFFER]


def test_rates_that_were_printed_as_nothing_are_computed_again() -> None:
    runs = read_path(shared("seeds/seed001_blocks.txt")).runs
    assert len(runs) == 23
    coarse = [run for run in runs if run.shown["Request throughput (req/s)"] == "0.00"]
    for run in coarse:
        exact = run.numbers["completed"] / run.numbers["duration_s"]
        assert run.numbers["request_throughput"] == pytest.approx(exact)


def test_a_mean_of_nearly_four_medians() -> None:
    assert DoubtKind.MEAN_FAR_FROM_MEDIAN in kinds("seed004_block.txt")[0]


def test_answers_of_one_length_and_speeds_for_throughputs() -> None:
    runs = read_path(shared("results/seed002author_moe-ray-deepseek-loadtest-result.md")).runs
    raised = [{doubt.kind for doubt in run_doubts(run)} for run in runs]
    assert sum(DoubtKind.NOT_STREAMED in found for found in raised) >= 5
    assert sum(DoubtKind.SPEED_NO_THROUGHPUT in found for found in raised) == 5


@pytest.mark.parametrize(
    "name", ["vllm0.26_rate1.json", "vllm0.26_inf_ulimit1024.json.gz", "sglang0.5.14_rate30.json.gz"]
)
def test_facts_give_back_the_file_s_own_aggregates(name: str) -> None:
    (run,) = read_path(shared(f"h100/{name}")).runs
    assert run.facts is not None
    from withstand.interop.derive import fact_stats  # noqa: PLC0415  only where the data is

    for metric, computed in fact_stats(run.facts).items():
        told = run.stats[metric]
        if metric != "itl":  # vLLM takes the chunks of one read as 0 apart, we leave that gap out
            assert computed.mean == pytest.approx(told.mean, rel=1e-3)
            assert computed.percentiles["p99"] == pytest.approx(told.percentiles["p99"], rel=1e-3)


@pytest.mark.parametrize("folder", ["samples/aiperf-0.13.0", "samples/genai-bench-0.0.5"])
def test_a_tool_s_folder_is_one_run(folder: str) -> None:
    (run,) = read_path(shared(folder)).runs
    assert run.facts is not None
