"""Every doubt about a stranger's numbers, from a small file as its tool writes it to the sentence that people read.

The files are made up; what is wrong with each was seen in a published report.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from withstand.app.audit import audit_paths
from withstand.metrics.doubts import RULES, DoubtKind
from withstand.report.audit_markdown import audit_markdown
from withstand.report.audit_parts import doubts_between, doubts_of

Files = Mapping[str, str]


def printed(**labels: str) -> str:
    """A printed block, with other values or further lines, ``Mean_TTFT`` for ``Mean TTFT (ms)``."""
    lines = {
        "Successful requests": "1000", "Benchmark duration (s)": "100.00", "Total input tokens": "50000",
        "Total generated tokens": "100000", "Request throughput (req/s)": "10.00",
        "Output token throughput (tok/s)": "1000.00", "Mean TTFT (ms)": "50.00", "Median TTFT (ms)": "48.00",
        "P99 TTFT (ms)": "80.00", "Mean TPOT (ms)": "10.00", "Median TPOT (ms)": "10.00", "P99 TPOT (ms)": "12.00",
        "Mean ITL (ms)": "10.00", "Median ITL (ms)": "10.00", "P99 ITL (ms)": "12.00",
    }  # fmt: skip
    named = {name.replace("_", " "): value for name, value in labels.items()}
    told = lines | {f"{n} (ms)" if n.split()[-1] in {"TTFT", "TPOT", "ITL", "E2EL"} else n: v for n, v in named.items()}
    body = "\n".join(f"{label + ':':<40} {value}" for label, value in told.items() if value)
    return f"============ Serving Benchmark Result ============\n{body}\n{'=' * 50}\n"


def served(**fields: Any) -> str:
    """A line of a serving benchmark's JSON."""
    line = {
        "backend": "vllm", "model_id": "m", "num_prompts": 1000, "request_rate": 10.0, "duration": 100.0,
        "completed": 1000, "total_input_tokens": 50_000, "total_output_tokens": 100_000, "request_throughput": 10.0,
        "output_throughput": 1000.0, "mean_ttft_ms": 50.0, "median_ttft_ms": 48.0, "p99_ttft_ms": 80.0,
        "mean_tpot_ms": 10.0, "median_tpot_ms": 10.0, "p99_tpot_ms": 12.0,
    }  # fmt: skip
    return json.dumps(line | fields) + "\n"


def levels(*rows: str) -> str:
    """A load test's table, a row a level: at once, TTFT p50, latency p50, tok/s."""
    head = (
        "concurrency,total_requests,success_count,error_count,requests_per_sec,"
        "ttft_p50_ms,latency_p50_ms,throughput_tokens_per_sec\n"
    )
    return head + "".join(f"{row}\n" for row in rows)


def rates(*rows: str, steps: str = "") -> str:
    """A load test's printed table of rates."""
    head = "| Target RPS | Success% | TTFT p50 | TTFT p90 | TTFT p99 | Total p90 | Total p99 |\n"
    return f"{steps}\n{head}|:--:|:--:|:--:|:--:|:--:|:--:|:--:|\n" + "".join(f"| {row} |\n" for row in rows)


SPEEDS = """\
| Concurrency | TTFT p50 | TTFT p90 | Total p90 | Tok/s |
|:-:|:-:|:-:|:-:|:-:|
| 4 | 408ms | 446ms | 4798ms | 36.5 |
"""
STEP = "  Testing 10.0 RPS for 30.0s...\n    Sent: 300 | Actual RPS: 10.0 | Success: 100 | TTFT p90: 56056ms\n"
LOST = {"num_prompts": 2000, "completed": 1015, "request_rate": "inf", "request_throughput": 10.15}

CASES: Mapping[DoubtKind, tuple[Files, str]] = {
    DoubtKind.FEWER_THAN_ASKED: (
        {"a.json": served(**LOST, framework="a")},
        "1,015 of 2,000 requests were completed: 2,000 - 1,015 = 985 are missing (49.2 %)",
    ),
    DoubtKind.CLIENT_LIMIT: (
        {"a.jsonl": served(**LOST, framework="a") + served(**LOST, framework="b")},
        "a and b completed 1,015 of 2,000 requests each: no two engines lose the same 985 by chance.",
    ),
    DoubtKind.BACKEND_NO_ENGINE: (
        {"a.jsonl": served(framework="a") + served(framework="b")},
        (
            "“backend” is vllm in every run: it names how the client spoke, not what was measured. "
            "That stands in “framework”: a, b."
        ),
    ),
    DoubtKind.REQUESTS_FAILED: ({"a.txt": printed(Failed_requests="100")}, "100 of 1,100 requests failed (9.1 %)"),
    DoubtKind.RATE_NOT_ACHIEVED: (
        {"a.json": served(request_rate=20.0, num_prompts=1000)},
        "10 of 20 requests a second were achieved (50 %): 1,000 requests at that rate are 50 s, these took 100 s.",
    ),
    DoubtKind.TOO_SHORT_TO_TELL: (
        {"a.txt": printed(**{"Traffic request rate": "20.0", "Mean E2EL": "55000.00", "Median E2EL": "55000.00"})},
        "but one answer alone takes 55 s",
    ),
    DoubtKind.SUMS_DISAGREE: (
        {"a.json": served(output_throughput=1200.0)},
        "1,200 a second times 100 s are 120,000 output tokens, but 100,000 are counted.",
    ),
    DoubtKind.CONCURRENCY_DISAGREES: (
        {"a.txt": printed(Maximum_request_concurrency="8", Mean_E2EL="1040.00", Median_E2EL="1038.00")},
        "1,000 requests of 1,040 ms in 100 s are 10.40 in flight on average, but no more than 8 were allowed",
    ),
    DoubtKind.PEAK_BELOW_MEAN: (
        {"a.txt": printed(**{"Peak output token throughput (tok/s)": "500.00"})},
        "The peak of 500 is below the mean of 1,000",
    ),
    DoubtKind.PRINTED_TOO_COARSE: (
        {"a.txt": printed(**{
            "Successful requests": "1", "Benchmark duration (s)": "745.20", "Request throughput (req/s)": "0.00",
            "Total generated tokens": "150", "Output token throughput (tok/s)": "0.20", "Total input tokens": "128000",
        })},
        "The request throughput is printed as 0.00: it is 1 / 745.2 s = 0.00134.",
    ),
    DoubtKind.TPOT_AGAINST_ITL: (
        {"a.txt": printed(Mean_TPOT="162.55", Median_TPOT="63.51", P99_TPOT="1337.20")},
        "Mean TPOT 162.6 ms against mean ITL 10 ms (16.26x): answers' lengths are miscounted",
    ),
    DoubtKind.MEAN_FAR_FROM_MEDIAN: (
        {"a.txt": printed(Mean_TTFT="463.85", Median_TTFT="124.74", P99_TTFT="5874.28")},
        "Mean TTFT 463.9 ms is 3.7 times its median of 124.7 ms",
    ),
    DoubtKind.HOP_BUFFERS: (
        {"a.txt": printed(Median_ITL="0.48")},
        "The median ITL is 0.48 ms beside a TPOT of 10 ms: the events come in bursts",
    ),
    DoubtKind.IMPOSSIBLE: (
        {"a.txt": printed(Median_E2EL="40.00")},
        "E2EL p50 of 40 ms is below TTFT p50 of 48 ms, which cannot be",
    ),
    DoubtKind.TOO_FEW_SAMPLES: (
        {"a.txt": printed(Successful_requests="100")},
        ("The p99 of 100 requests is not known: 1 % of them are 1, and its 95 % interval has an upper end from 368 on "
        "(1 - 0.99^368 = 97.5 %)."),
    ),
    DoubtKind.CLAIMED_NOT_COUNTED: (
        {"a.txt": "#Output tokens: 25883\n" + printed(**{
            "Total generated tokens": "25883", "Total generated tokens (retokenized)": "129591",
            "Benchmark duration (s)": "107.24", "Output token throughput (tok/s)": "241.36",
        })},
        (
            "Claimed are 25,883 output tokens, counted from the text 129,591 (5.01x). The claim equals what was asked "
            "for: it is no count at all. By the text the throughput is 1,208 tok/s, not 241.4."
        ),
    ),
    DoubtKind.EVENTS_AGAINST_TOKENS: (
        {"a.txt": printed(Mean_E2EL="5050.00", Median_E2EL="5000.00")},
        "(5,050 - 50) / 10 ms are 500 gaps an answer, so about 501,000 events in all, but 100,000 tokens are counted.",
    ),
    DoubtKind.PARTS_AGAINST_WHOLE: (
        {"a.txt": printed(Mean_E2EL="5050.00", Median_E2EL="5000.00")},
        "50 + 10 x (100 - 1) ms = 1.04 s, but E2EL is 5.05 s (20.6 %)",
    ),
    DoubtKind.LENGTHS_DIFFER: (
        {"a.json": served(dataset_name="random", random_output_len=200)},
        "Asked were 200 output tokens, 100,000 / 1,000 = 100 came back.",
    ),
    DoubtKind.QUEUE_OF_A_BURST: (
        {"a.json": served(request_rate="inf", median_ttft_ms=48_000.0, mean_ttft_ms=48_000.0, p99_ttft_ms=90_000.0)},
        "Half of the requests waited 48 s or more for their first token, 48 % of the 100 s that all 1,000 took",
    ),
    DoubtKind.CONCURRENCY_NOT_REACHED: (
        {"a.csv": levels("64,20,20,0,0.69,4267,28777,320.5")},
        "64 at once are in the label, and 20 requests were sent in all",
    ),
    DoubtKind.FLAT_THROUGHPUT: (
        {"a.csv": levels("1,20,20,0,.07,1048,9142,25.79", "2,20,20,0,.08,9072,16758,25.98",
                         "4,20,20,0,.06,36295,58089,26.17")},
        "From 1 to 4 at once the output stays 25.79 to 26.17 tok/s, while TTFT goes from 1,048 to 36,295 ms",
    ),
    DoubtKind.LIKE_A_LIMITER: (
        {"a.md": rates("10.0 | 33% | 28815ms | 56056ms | 61271ms | 56617ms | 61828ms", steps=STEP)},
        "100 of 300 requests in 30 s came through: exactly 100 a minute. That is how a limiter of a gateway answers",
    ),
    DoubtKind.NOT_STREAMED: (
        {"a.md": rates("1.0 | 100% | 5556ms | 5648ms | 5799ms | 6210ms | 6361ms")},
        "E2EL - TTFT is the same however long a request takes: 562 ms at p90, 562 ms at p99.",
    ),
    DoubtKind.SPEED_NO_THROUGHPUT: (
        {"a.md": SPEEDS},
        (
            "36.50 tok/s is the mean speed of single requests, not what the server put out. With 4 at once the server "
            "may have made up to 146."
        ),
    ),
    DoubtKind.SPEED_BESIDE_THROUGHPUT: (
        {"a.md": SPEEDS, "b.csv": levels("1,20,20,0,.08,700,14756,28.01", "8,20,20,0,.3,2434,22727,149.43")},
        "36.50 tok/s are means of single requests' speeds, 28.01 to 149.4 tok/s are what a server put out",
    ),
    DoubtKind.OTHER_CONDITIONS: (
        {"a.json": served(), "b.json": served(model_id="other")},
        "The files differ in model (m, other): a difference between their numbers may be that of any of these.",
    ),
}  # fmt: skip
OWN = {
    "worker_lost", "client_bound", "sends_late", "clock_lagged", "rate_limited", "error_text", "stopped_early",
    "latency_grows", "shared_reads", "several_tokens_an_event", "tokens_estimated", "finish_reasons_mixed",
    "prefix_cache", "warmup_missing", "simulated", "preempted", "held_before_server", "other_traffic",
    "records_missing", "service_lost",
}  # fmt: skip
"""Of runs of ours, whose records are at hand: tests of the metrics have each."""


@pytest.mark.parametrize("kind", CASES)
def test_a_file_with_this_fault_is_told_of_it(kind: DoubtKind, tmp_path: Path) -> None:
    files, said = CASES[kind]
    paths = [tmp_path / name for name in files]
    for path in paths:
        path.write_text(files[path.name], "utf-8")
    audit = audit_paths(paths)
    assert not [file.unreadable for file in audit.files if file.unreadable]
    doubts = [*doubts_between(audit), *(doubt for file in audit.files for doubt in doubts_of(file))]
    sentences = [case.sentence for doubt in doubts if doubt.kind is kind for case in doubt.cases]
    assert [sentence for sentence in sentences if said in sentence], sentences


def test_what_is_sound_is_told_of_nothing(tmp_path: Path) -> None:
    for name, text in {"a.txt": printed(), "a.json": served()}.items():
        (tmp_path / name).write_text(text, "utf-8")
        assert not doubts_of(audit_paths([tmp_path / name]).files[0])


@pytest.mark.parametrize("huge", ["mean_tpot_ms", "mean_ttft_ms", "p99_e2el_ms", "duration", "request_rate"])
@pytest.mark.parametrize("tiny", ["mean_itl_ms", "median_ttft_ms", "mean_e2el_ms", "request_throughput", "duration"])
@pytest.mark.parametrize("least", [1e-308, 1e-29])
def test_numbers_of_any_size_are_judged_and_none_of_infinity_is_made(
    huge: str, tiny: str, least: float, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(served(**{huge: 1e10, tiny: least, "mean_e2el_ms": 1040.0} | {tiny: least}))
    told = audit_markdown(audit_paths([tmp_path / "a.json"]))
    assert "cannot be read" not in told.lower()
    assert not re.search(r"\binf\b|\bnan\b", told.replace("rate-inf", ""))


def test_a_zero_has_no_sign_and_no_rate_is_beyond_all_bounds(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(served(median_itl_ms=-0.0, mean_itl_ms=-0.0, request_rate=4e300))
    told = audit_markdown(audit_paths([tmp_path / "a.json"]))
    assert "-0.00" not in told
    assert "4e+300" not in told
    (tmp_path / "a.json").write_text(served(request_rate=4e12))
    assert audit_paths([tmp_path / "a.json"]).files[0].cases[0].name == "rate-4000000000000"


def test_no_kind_of_doubt_is_without_a_case() -> None:
    assert {kind.value for kind in CASES} | OWN == {kind.value for kind in DoubtKind} == {kind.value for kind in RULES}
