"""What runs are called: by what tells them apart, and by no more."""

from typing import Any

from withstand.interop.shape import Conditions, ImportedRun, Source
from withstand.interop.summary import names_of


def run(completed: float | None = None, prompts: float | None = None, file: str = "f", **asked: Any) -> ImportedRun:
    numbers = {} if completed is None else {"completed": completed}
    source = Source(file=file, format="printed block", tool="vLLM", position="line 7")
    return ImportedRun(source=source, numbers=numbers, conditions=Conditions(input_tokens=prompts, **asked))


def test_a_load_is_enough_where_it_tells_runs_apart() -> None:
    told = [run(100, engine="vllm", request_rate=rate) for rate in (1.0, 2.5)]
    assert names_of(told) == ["vllm rate-1", "vllm rate-2.5"]


def test_runs_of_one_load_are_called_by_how_much_there_was() -> None:
    assert names_of([run(8, 80.4), run(512, 80.4)]) == ["n-8", "n-512"]
    assert names_of([run(1, 80), run(8, 80), run(1, 128_000)]) == ["n-1 in-80", "n-8 in-80", "n-1 in-128000"]
    assert names_of([run(20, max_concurrency=1), run(3, max_concurrency=1)]) == ["conc-1 n-20", "conc-1 n-3"]


def test_repeats_are_numbered_and_nothing_else_is_said_of_them() -> None:
    assert names_of([run(100, request_rate=5.0), run(100, request_rate=5.0)]) == ["rate-5", "rate-5 #2"]


def test_what_no_file_names_is_called_by_its_folder_or_file() -> None:
    """Evalscope never tells which engine it has measured."""
    told = [run(50, max_concurrency=c, file=f"{e}/c{c}/benchmark.json") for e in ("sglang", "vllm") for c in (1, 8)]
    assert names_of(told) == ["conc-1 sglang", "conc-8 sglang", "conc-1 vllm", "conc-8 vllm"]
    assert names_of([run(50, file="a.txt"), run(50, file="b.txt")]) == ["a", "b"]
    stamped = [run(50, request_rate=5, file=f"openai-5.0qps-Llama-3.1-8B-20260101-10000{i}.json") for i in (1, 2)]
    assert names_of(stamped) == ["rate-5", "rate-5 #2"]


def test_what_tells_nothing_is_called_by_its_place() -> None:
    assert names_of([run()]) == ["line 7"]
    assert names_of([run(), run()]) == ["line 7", "line 7 #2"]
