"""Single requests, known, in the formats that keep them: of each what a reader must make of it."""

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec
from hypothesis import strategies as st

NS = 1_000_000_000


class Asked(msgspec.Struct, frozen=True):
    """One request; times in ns since the run's begin, whole microseconds, so that every format can hold them."""

    sent_ns: int
    ttft_ns: int
    gaps_ns: tuple[int, ...]
    prompt: int
    failed: bool

    @property
    def stamps_ns(self) -> list[int]:
        """Of the chunks, from the send; each holds one token."""
        return list(accumulate(self.gaps_ns, initial=self.ttft_ns))

    @property
    def tokens(self) -> int:
        return len(self.gaps_ns) + 1

    @property
    def latency_ns(self) -> int:
        return self.stamps_ns[-1]


_US = st.integers(1000, 90_000_000).map(lambda us: us * 1000)
REQUESTS = st.lists(
    st.builds(
        Asked,
        sent_ns=st.integers(0, 3_600_000_000).map(lambda us: us * 1000),
        ttft_ns=_US,
        gaps_ns=st.lists(_US, min_size=1, max_size=5).map(tuple),
        prompt=st.integers(1, 10_000),
        failed=st.booleans(),
    ),
    min_size=1,
    max_size=6,
).filter(lambda requests: not all(request.failed for request in requests))


def _s(ns: float) -> float:
    return ns / NS


def vllm(requests: Sequence[Asked]) -> str:
    """``--save-detailed``: lists, 0.0 where a request failed, any instant of beginning."""
    good = [r for r in requests if not r.failed]
    value = {
        "backend": "vllm", "duration": 9.5, "completed": len(good), "output_throughput": 1.0,
        "input_lens": [r.prompt for r in requests], "output_lens": [0 if r.failed else r.tokens for r in requests],
        "ttfts": [0.0 if r.failed else _s(r.ttft_ns) for r in requests],
        "itls": [[] if r.failed else [_s(gap) for gap in r.gaps_ns] for r in requests],
        "start_times": [5.25 + _s(r.sent_ns) for r in requests],
        "errors": ["Traceback\nKeyError: 'x'" if r.failed else "" for r in requests],
    }  # fmt: skip
    return json.dumps(value)


def aiperf(requests: Sequence[Asked]) -> str:
    """Lines of ``profile_export.jsonl``: ns of the wall clock, ms, an error in place of metrics."""
    lines = []
    for r in requests:
        value: dict[str, Any] = {"metadata": {"request_start_ns": 1_790_000_000 * NS + r.sent_ns}, "metrics": {}}
        if r.failed:
            value["error"] = {"code": 500, "message": "Internal Server Error"}
        else:
            times = {"time_to_first_token": r.ttft_ns, "request_latency": r.latency_ns}
            value["metrics"] = {name: {"value": ns / 1e6, "unit": "ms"} for name, ns in times.items()}
            value["metrics"]["inter_chunk_latency"] = {"value": [gap / 1e6 for gap in r.gaps_ns], "unit": "ms"}
            value["metrics"]["output_sequence_length"] = {"value": r.tokens, "unit": "tokens"}
            value["metrics"]["input_sequence_length"] = {"value": r.prompt, "unit": "tokens"}
        lines.append(json.dumps(value))
    return "\n".join([*lines, ""])


def guidellm(requests: Sequence[Asked]) -> str:
    """Since 0.4: instants of the wall clock, by status; what failed has no end."""
    kept: dict[str, list[Any]] = {"successful": [], "errored": []}
    begin = 1_790_000_000
    for r in requests:
        at = {"request_start": begin + _s(r.sent_ns)}
        if not r.failed:
            at |= {"first_token_iteration": at["request_start"] + _s(r.ttft_ns),
                   "last_token_iteration": at["request_start"] + _s(r.latency_ns),
                   "request_end": at["request_start"] + _s(r.latency_ns)}  # fmt: skip
        entry = {"info": {"timings": at}, "prompt_tokens": r.prompt, "output_tokens": r.tokens}
        kept["errored" if r.failed else "successful"].append(entry)
    metrics = {"time_to_first_token_ms": {"successful": {}}}
    return json.dumps({"benchmarks": [{"metrics": metrics, "requests": kept}]})


def genai_bench(requests: Sequence[Asked]) -> str:
    """Seconds, and no instants."""
    entries = [
        {"error_code": 500, "error_message": "no"} if r.failed else
        {"error_code": None, "ttft": _s(r.ttft_ns), "e2e_latency": _s(r.latency_ns), "num_input_tokens": r.prompt,
         "num_output_tokens": r.tokens}
        for r in requests
    ]  # fmt: skip
    return json.dumps({"aggregated_metrics": {"stats": {}}, "individual_request_metrics": entries})


def llmperf(requests: Sequence[Asked]) -> str:
    """The same under other names."""
    entries = [
        {"ttft_s": 0, "end_to_end_latency_s": 0, "error_code": 429, "error_msg": "Too Many Requests"} if r.failed else
        {"ttft_s": _s(r.ttft_ns), "end_to_end_latency_s": _s(r.latency_ns), "number_input_tokens": r.prompt,
         "number_output_tokens": r.tokens, "error_code": None, "error_msg": ""}
        for r in requests
    ]  # fmt: skip
    return json.dumps(entries)


def inference_perf(requests: Sequence[Asked]) -> str:
    """Instants of a clock of its own, one for each token."""
    entries = []
    for r in requests:
        sent = 77.5 + _s(r.sent_ns)
        answer = {"output_tokens": r.tokens, "output_token_times": [sent + _s(at) for at in r.stamps_ns]}
        info = {
            "request_metrics": {"text": {"input_tokens": r.prompt}},
            "response_metrics": None if r.failed else answer,
        }
        error = {"error_type": "ClientError", "error_msg": "broken pipe"} if r.failed else None
        entries.append({"start_time": sent, "end_time": sent + _s(r.latency_ns), "info": info, "error": error})
    return json.dumps(entries)


WRITERS: Mapping[str, Callable[[Sequence[Asked]], str]] = {
    "vllm": vllm, "aiperf": aiperf, "guidellm": guidellm, "genai_bench": genai_bench, "llmperf": llmperf,
    "inference_perf": inference_perf,
}  # fmt: skip
WITHOUT_INSTANTS = frozenset({"genai_bench", "llmperf"})
WITH_GAPS = frozenset({"vllm", "aiperf"})
