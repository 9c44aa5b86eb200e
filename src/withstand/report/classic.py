"""The "Serving Benchmark Result" block, as vLLM 0.33 or SGLang 0.5 prints it, so that whoever greps it still finds it.

Labels, widths and trailing blanks are theirs; where we cut requests ourselves, a line of ours counts them. A number
that is not known reads ``n/a``; theirs would print 0 or nan.
"""

from collections.abc import Iterator
from typing import Literal

from withstand.metrics.summary import Distribution, StageSummary

Style = Literal["vllm", "sglang"]

_WIDTH = 50
_VLLM_PERCENTILES = (50, 90, 99)
_SGLANG_PERCENTILES = (90, 95, 99)


def classic(stage: StageSummary, style: Style = "vllm", *, backend: str | None = None) -> str:
    """The block of one stage, without a newline at its end. ``backend`` is a line of SGLang's alone."""
    lines = _vllm(stage) if style == "vllm" else _sglang(stage, backend)
    return "\n".join([f"{' Serving Benchmark Result ':=^{_WIDTH}}", *lines, "=" * _WIDTH])


def _vllm(stage: StageSummary) -> Iterator[str]:
    yield _line("Successful requests:", stage.completed)
    yield _line("Failed requests:", stage.failed - stage.cut)
    if stage.cut:
        yield _line("Requests cut by us:", stage.cut)
    if stage.load.max_concurrency is not None:
        yield _line("Maximum request concurrency:", stage.load.max_concurrency)
    if stage.load.request_rate is not None:
        yield _line("Request rate configured (RPS):", float(stage.load.request_rate))
    yield _line("Benchmark duration (s):", stage.duration_s)
    yield _line("Total input tokens:", stage.total_input_tokens)
    yield _line("Total generated tokens:", stage.total_output_tokens)
    yield _line("Request throughput (req/s):", stage.request_throughput)
    if stage.request_goodput is not None:
        yield _line("Request goodput (req/s):", stage.request_goodput)
    yield _line("Output token throughput (tok/s):", stage.output_throughput)
    yield _line("Peak output token throughput (tok/s):", stage.output_throughput_peak)
    yield _line("Peak concurrent requests:", _as_float(stage.concurrency_peak))
    yield _line("Total token throughput (tok/s):", stage.total_token_throughput)
    yield from _vllm_section("Time to First Token", "TTFT", stage.ttft)
    yield from _vllm_section("Time per Output Token (excl. 1st token)", "TPOT", stage.tpot)
    yield from _vllm_section("Inter-token Latency", "ITL", stage.itl)
    yield from _vllm_section("End-to-end Latency", "E2EL", stage.e2el)
    if stage.response.n != 0:
        yield from _vllm_section("Queue-inclusive End-to-end Latency", "E2EL incl. Client Queue", stage.response)


def _vllm_section(title: str, name: str, distribution: Distribution) -> Iterator[str]:
    yield f"{title:-^{_WIDTH}}"
    yield from _mean_and_median(name, distribution)
    yield from _percentiles(name, distribution, _VLLM_PERCENTILES)


def _sglang(stage: StageSummary, backend: str | None) -> Iterator[str]:
    yield _line("Backend:", backend)
    yield _line("Traffic request rate:", _traffic(stage))
    yield _line("Max request concurrency:", stage.load.max_concurrency or "not set")
    yield _line("Successful requests:", stage.completed)
    yield _line("Benchmark duration (s):", stage.duration_s)
    yield _line("Total input tokens:", stage.total_input_tokens)
    yield _line("Total input text tokens:", stage.total_input_tokens)
    yield _line("Total generated tokens:", stage.total_output_tokens)
    yield _line("Total generated tokens (retokenized):", None)
    yield _line("Request throughput (req/s):", stage.request_throughput)
    yield _line("Input token throughput (tok/s):", _input_throughput(stage))
    yield _line("Output token throughput (tok/s):", stage.output_throughput)
    yield _line("Peak output token throughput (tok/s):", stage.output_throughput_peak)
    yield _line("Peak concurrent requests:", stage.concurrency_peak)
    yield _line("Total token throughput (tok/s):", stage.total_token_throughput)
    yield _line("Concurrency:", stage.concurrency_mean)
    yield from _sglang_goodput(stage)
    yield from _sglang_section("End-to-End Latency", "E2E Latency", stage.e2el)
    yield from _sglang_section("Time to First Token", "TTFT", stage.ttft)
    yield from _sglang_section("Time per Output Token (excl. 1st token)", "TPOT", stage.tpot)
    yield from _sglang_section("Inter-Token Latency", "ITL", stage.itl)
    yield _line("Max ITL (ms):", stage.itl.max)


def _sglang_goodput(stage: StageSummary) -> Iterator[str]:
    if stage.request_goodput is None:
        return
    yield f"{'Goodput':-^{_WIDTH}}"
    yield _line("Request goodput (req/s):", stage.request_goodput)
    if stage.duration_s is not None and stage.attempted:
        attained = 100 * stage.request_goodput * stage.duration_s / stage.attempted
        yield _line("SLO attainment (%):", attained)


def _sglang_section(title: str, name: str, distribution: Distribution) -> Iterator[str]:
    yield f"{title:-^{_WIDTH}}"
    yield from _mean_and_median(name, distribution)
    yield from _percentiles(name, distribution, _SGLANG_PERCENTILES)


def _mean_and_median(name: str, distribution: Distribution) -> Iterator[str]:
    yield _line(f"Mean {name} (ms):", distribution.mean)
    yield _line(f"Median {name} (ms):", distribution.percentiles.get("p50"))


def _percentiles(name: str, distribution: Distribution, percentiles: tuple[int, ...]) -> Iterator[str]:
    for p in percentiles:
        yield _line(f"P{p} {name} (ms):", distribution.percentiles.get(f"p{p}"))


def _traffic(stage: StageSummary) -> str:
    """SGLang knows a number, ``inf`` and ``trace``; other processes are called by their own names."""
    rate = stage.load.request_rate
    return stage.load.arrivals if rate is None else str(float(rate))


def _input_throughput(stage: StageSummary) -> float | None:
    if stage.total_input_tokens is None or not stage.duration_s:
        return None
    return stage.total_input_tokens / stage.duration_s


def _as_float(value: int | None) -> float | None:
    """VLLM prints this count with two decimals."""
    return None if value is None else float(value)


def _line(label: str, value: float | str | None) -> str:
    """Ints and words as they are, floats with two decimals."""
    text = "n/a" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
    return f"{label:<40} {text:<10}"
