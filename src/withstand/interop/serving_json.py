"""One flat object a run: vLLM's clients, SGLang's ``bench_serving``, InferenceX's copy, and forks of them.

Also a row of a sweep's ``summary.csv``, and a stage of our own ``summary.json``.

vLLM and SGLang say ms in the key; InferenceX dropped the ``_ms`` and means seconds. ``request_goodput:`` with a colon
is vLLM's of early 2025, ``request_inthroughput`` its request throughput of early 2024. ``backend`` is how the client
spoke; what was measured is its user's label, if anything.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from withstand.interop import serving_facts, values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place
from withstand.interop.tables import csv_dicts

_LATENCY = re.compile(
    r"^(?P<stat>mean|median|std|min|max|p\d+(?:\.\d+)?)_"
    r"(?P<metric>ttft|tpot|itl|e2el|e2e_latency|client_queue_time|e2el_including_client_queue)(?P<unit>_ms|_s)?$"
)
_METRICS = {
    "ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2el", "e2e_latency": "e2el",
    "client_queue_time": "client_queue_time", "e2el_including_client_queue": "e2el_with_queue",
}  # fmt: skip
_NUMBERS = {
    "duration": "duration_s",
    "completed": "completed",
    "failed": "failed",
    "total_input_tokens": "total_input_tokens",
    "total_output_tokens": "total_output_tokens",
    "total_generated_tokens": "total_output_tokens",
    "total_output_tokens_retokenized": "retokenized_output_tokens",
    "request_throughput": "request_throughput",
    "request_inthroughput": "request_throughput",
    "request_goodput": "request_goodput",
    "request_goodput:": "request_goodput",
    "output_throughput": "output_throughput",
    "total_token_throughput": "total_token_throughput",
    "total_throughput": "total_token_throughput",
    "input_throughput": "input_throughput",
    "max_output_tokens_per_s": "output_events_peak",
    "max_concurrent_requests": "concurrency_touching",
    "concurrency": "concurrency_mean",
    "accept_length": "accept_length",
    "spec_decode_acceptance_length": "accept_length",
}
_CONDITIONS = {
    "model_id": "model", "backend": "backend", "dataset_name": "dataset", "burstiness": "burstiness",
    "max_concurrency": "max_concurrency", "num_prompts": "num_prompts", "date": "date",
}  # fmt: skip
_ENGINE_LABELS = ("framework", "engine", "deployment", "architecture", "label", "tag")
_ASKED_LENGTHS = (("random_input_len", "random_output_len"), ("input_len", "output_len"))
_SGLANG_KEYS = frozenset(
    {"total_output_tokens_retokenized", "random_input_len", "sharegpt_output_len", "server_info", "total_throughput",
     "mean_e2e_latency_ms", "total_input_vision_tokens"}
)  # fmt: skip
_NOT_LABELS = frozenset({"rtfx", "good_completed", "server_info", "request_rate"})


_RATES = ("output_throughput", "request_throughput", "request_inthroughput")
_WARM_UP = -1


def recognises(value: Mapping[str, Any]) -> bool:
    """A duration, a count of completed requests, and something that was measured; no warm-up of a sweep."""
    measured = any(key in value for key in _RATES) or any(_LATENCY.match(key) for key in value)
    return "duration" in value and "completed" in value and measured and value.get("run_number") != _WARM_UP


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """One run."""
    tool = tool_of(value)
    run = place.builder(f"{tool} JSON", tool)
    for key, given in value.items():
        _take(run, key, given, in_seconds=tool == "InferenceX")
    _conditions(run, value)
    if tool == "InferenceX":
        run.remark("Times are read as seconds: its keys have no unit, and its tool writes seconds.")
    serving_facts.attach(run, value)
    note_definitions(run, tool)
    return [run.build()]


def tool_of(value: Mapping[str, Any]) -> str:
    """Whose file it is."""
    if any((found := _LATENCY.match(key)) and not found["unit"] for key in value):
        return "InferenceX"
    if "self_check" in value:
        return "withstand"
    return "SGLang" if _SGLANG_KEYS & value.keys() else "vLLM"


def note_definitions(run: RunBuilder, tool: str) -> None:
    """Where these clients' formulas depart from the catalogue's under the same name."""
    if tool == "SGLang":
        run.note(["e2el"], "ends with the stream's last line ([DONE], usage), not with the last token.")
        run.note(["tpot"], "its end is the stream's last line, as in its E2EL.")
        run.note(["ttft"], "an answer without a token counts as 0 in the mean.")
    run.note(["itl"], "gaps between chunks; chunks of one read count as about 0 apart.")
    run.note(["duration_s"], "begins before the first send.")


def _take(run: RunBuilder, key: str, given: Any, *, in_seconds: bool) -> None:
    if key in _NUMBERS:
        run.number(_NUMBERS[key], given, said=key)
        return
    latency = _LATENCY.match(key)
    if latency:
        scale = 1000.0 if latency["unit"] == "_s" or (in_seconds and not latency["unit"]) else 1.0
        run.stat(_METRICS[latency["metric"]], latency["stat"], given, scale, said=key)


def _conditions(run: RunBuilder, value: Mapping[str, Any]) -> None:
    for key, name in _CONDITIONS.items():
        run.condition(name, value.get(key))
    run.condition("model", values.mapping(value.get("server_info")).get("model_path"))
    run.ramp(*(value.get(f"ramp_up_{part}") for part in ("strategy", "start_rps", "end_rps")))
    run.rate(value.get("request_rate"))
    _asked_lengths(run, value)
    for key in _ENGINE_LABELS:
        run.condition("engine", value.get(key))
    taken = {*_NUMBERS, *_CONDITIONS, *_NOT_LABELS}
    for key, given in value.items():
        if key not in taken and not _LATENCY.match(key):
            run.label(key, given)


def _asked_lengths(run: RunBuilder, value: Mapping[str, Any]) -> None:
    """SGLang writes ``random_input_len`` whatever the dataset is."""
    dataset = values.text(value.get("dataset_name"))
    for asked, returned in _ASKED_LENGTHS:
        if asked.startswith("random") and dataset is not None and "random" not in dataset:
            continue
        run.condition("input_tokens", value.get(asked))
        run.condition("output_tokens", value.get(returned))


def recognises_csv(header: Sequence[str]) -> bool:
    """A sweep's ``summary.csv``."""
    return recognises(dict.fromkeys(header))


def read_csv(rows: Sequence[Sequence[str]], place: Place) -> list[ImportedRun]:
    """One run a row."""
    return [run for i, row in enumerate(csv_dicts(rows), start=2) for run in read(row, place.at(f"line {i}"))]
