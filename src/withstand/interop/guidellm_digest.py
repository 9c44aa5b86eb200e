"""Somebody's own flat summary of a GuideLLM file: its names say ms where GuideLLM has seconds."""

from collections.abc import Mapping
from typing import Any

from withstand.interop import values
from withstand.interop.build import RunBuilder
from withstand.interop.guidellm import NOTES
from withstand.interop.shape import ImportedRun
from withstand.interop.source import Place


def recognises(value: Mapping[str, Any]) -> bool:
    """Somebody's own summary of a GuideLLM file."""
    return value.get("type") == "generative_benchmark" and "ttft_mean_ms" in value


def read(value: Mapping[str, Any], place: Place) -> list[ImportedRun]:
    """Its request latency carries ``_ms`` and holds seconds: it lies below the TTFT, which no latency does."""
    run = place.builder("digest of GuideLLM", "GuideLLM")
    _digest_counts(run, value)
    for which in ("mean", "p99"):
        run.stat("ttft", which, value.get(f"ttft_{which}_ms"), said=f"ttft_{which}_ms")
        run.stat("tpot", which, value.get(f"itl_{which}_ms"), said=f"itl_{which}_ms")
        _digest_latency(run, value, which)
    run.leave("time_per_output_token", "its meaning changed between GuideLLM's versions, and no version is told.")
    run.number("request_throughput", value.get("throughput_mean_rps"))
    run.number("output_throughput", value.get("output_tokens_per_second_mean"))
    run.condition("model", value.get("backend_model"))
    run.rate(value.get("rate"))
    run.label("strategy", value.get("strategy"))
    for name in ("tpot", "request_throughput", "output_throughput"):
        run.note([name], NOTES[name])
    return [run.build()]


def _digest_counts(run: RunBuilder, value: Mapping[str, Any]) -> None:
    names = {"successful": "completed", "errored": "failed", "incomplete": "incomplete", "total": "attempted"}
    for status, name in names.items():
        run.number(name, value.get(f"{status}_requests"), said=f"{status}_requests")
    run.number("duration_s", value.get("duration"))
    run.condition("input_tokens", value.get("prompt_tokens"))
    run.condition("output_tokens", value.get("output_tokens"))


def _digest_latency(run: RunBuilder, value: Mapping[str, Any], which: str) -> None:
    said = f"request_latency_{which}_ms"
    latency, ttft_ms = values.number(value.get(said)), run.value("ttft", which)
    if latency is not None and ttft_ms is not None and latency < ttft_ms:
        run.leave(said, f"{latency:.4g} ms would be less than its own TTFT of {ttft_ms:,.2f} ms: the unit is not ms. "
                        "GuideLLM has seconds here.")  # fmt: skip
        return
    run.stat("e2el", which, latency, said=said)
