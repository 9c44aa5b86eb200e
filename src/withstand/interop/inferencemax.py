"""InferenceMAX and InferenceX: aggregated records of sweeps, all times in seconds without a unit in the key.

Their interactivity (``*_intvty``) is 1000 / TPOT, no measurement of its own; ``tput_per_gpu`` counts prompt tokens
too; queries a second are means over one-second buckets.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from withstand.interop import values
from withstand.interop.build import RunBuilder
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place

_STAT = re.compile(r"^(?P<stat>mean|median|std|min|max|p\d+(?:\.\d+)?)_(?P<metric>ttft|tpot|itl|e2el)$")
_NUMBERS = {
    "num_requests_total": "attempted",
    "num_requests_successful": "completed",
    "duration_seconds": "duration_s",
    "total_prompt_tokens": "total_input_tokens",
    "total_generation_tokens": "total_output_tokens",
    "output_tput_tps": "output_throughput",
    "input_tput_tps": "input_throughput",
    "total_tput_tps": "total_token_throughput",
    "tput_per_gpu": "throughput_per_gpu",
    "output_tput_per_gpu": "output_throughput_per_gpu",
    "input_tput_per_gpu": "input_throughput_per_gpu",
    "mean_input_tokens": "mean_input_tokens",
    "mean_output_tokens_actual": "mean_output_tokens",
}
_CONDITIONS = {
    "model": "model", "framework": "engine", "scenario_type": "dataset", "conc": "max_concurrency",
    "isl": "input_tokens", "osl": "output_tokens",
}  # fmt: skip
_LABELS = (
    "hw", "tp", "ep", "dp_attention", "precision", "spec_decoding", "disagg", "offloading", "image", "is_multinode",
    "num_prefill_gpu", "num_decode_gpu", "infmax_model_prefix",
)  # fmt: skip
_SUFFIXES = ("_qps", "_intvty")


def recognises(value: Mapping[str, Any]) -> bool:
    """One record: hardware, concurrency and times without units."""
    return {"hw", "conc"} <= value.keys() and any(_STAT.match(key) for key in value)


def recognises_list(value: Sequence[Any]) -> bool:
    """A list of such records."""
    return bool(value) and all(isinstance(item, Mapping) and recognises(item) for item in value)


def read_list(value: Sequence[Mapping[str, Any]], place: Place) -> list[ImportedRun]:
    """One run a record."""
    return [run for i, item in enumerate(value) for run in read(item, place.at(f"[{i}]"))]


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """One record."""
    run = place.builder("InferenceMAX aggregate", "InferenceMAX")
    for key, given in value.items():
        found = _STAT.match(key)
        if found:
            run.stat(found["metric"], found["stat"], given, 1000.0, said=key)
        elif key in _NUMBERS:
            run.number(_NUMBERS[key], given, said=key)
    _copied_itl(run, value)
    if any(key.endswith(_SUFFIXES) for key in value):
        run.leave("*_intvty, *_qps", "1000 / TPOT, and means over one-second buckets: no measurements of their own.")
    for key, name in _CONDITIONS.items():
        run.condition(name, value.get(key))
    for key in _LABELS:
        run.label(key, value.get(key))
    run.rate("inf")
    run.remark("Times are read as seconds: its keys have no unit, and its tool writes seconds.")
    return [run.build()]


def _copied_itl(run: RunBuilder, value: Mapping[str, Any]) -> None:
    pairs = [(value.get(f"{w}_itl"), value.get(f"{w}_tpot")) for w in ("mean", "median", "p90", "p95", "p99", "std")]
    given = [(itl, tpot) for itl, tpot in pairs if values.number(itl) is not None]
    if len(given) > 1 and all(itl == tpot for itl, tpot in given):
        run.drop("itl", "it equals TPOT to the last digit in every statistic: a copy, no gaps between chunks.")
