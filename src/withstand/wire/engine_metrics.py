"""What engines call the things that are watched: a table an engine, and how several series of one name are one value.

Pure. Checked against what vLLM 0.26 and SGLang 0.5.14 really said, and the documentation of the others. Of several
names the first one that is there counts: a newer name comes first, and both may be there at once. Who watches a run
reads all of it; the gateway only wants the load, many times a second.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean

import msgspec

from withstand.record import Seen
from withstand.wire.prometheus import Series, read_series

_SHARES = frozenset({Seen.KV_SHARE, Seen.PREFIX_SHARE})
"""Their mean is taken over several engines behind one address; of everything else the sum."""
_RANKS = ("tp_rank", "pp_rank", "moe_ep_rank")


class _Term(msgspec.Struct, frozen=True):
    """A series' name, and the labels that it must have."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()

    def is_of(self, series: Series) -> bool:
        return series.name == self.name and all(series.labels.get(key) == value for key, value in self.labels)


_Sum = tuple[_Term, ...]
_Table = Mapping[Seen, tuple[_Sum, ...]]
"""Alternatives, each a sum of terms of which the first must be there."""


def _any(*names: str) -> tuple[_Sum, ...]:
    return tuple((_Term(name),) for name in names)


def _stage(kind: str, *stages: str) -> tuple[_Sum, ...]:
    name = f"sglang:per_stage_req_latency_seconds_{kind}"
    return (tuple(_Term(name, (("stage", stage),)) for stage in stages),)


_VLLM: _Table = {
    Seen.RUNNING: _any("vllm:num_requests_running"),
    Seen.WAITING: _any("vllm:num_requests_waiting"),
    Seen.KV_SHARE: _any("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    Seen.PREFIX_QUERIES: _any(
        "vllm:prefix_cache_queries_total",
        "vllm:prefix_cache_queries",
        "vllm:gpu_prefix_cache_queries_total",
        "vllm:gpu_prefix_cache_queries",
    ),
    Seen.PREFIX_HITS: _any(
        "vllm:prefix_cache_hits_total",
        "vllm:prefix_cache_hits",
        "vllm:gpu_prefix_cache_hits_total",
        "vllm:gpu_prefix_cache_hits",
    ),
    Seen.PREFIX_SHARE: _any("vllm:gpu_prefix_cache_hit_rate"),
    Seen.PREEMPTIONS: _any("vllm:num_preemptions_total", "vllm:num_preemptions"),
    Seen.QUEUE_S: _any("vllm:request_queue_time_seconds_sum"),
    Seen.QUEUED: _any("vllm:request_queue_time_seconds_count"),
    Seen.PREFILL_S: _any("vllm:request_prefill_time_seconds_sum"),
    Seen.PREFILLED: _any("vllm:request_prefill_time_seconds_count"),
    Seen.TTFT_S: _any("vllm:time_to_first_token_seconds_sum"),
    Seen.ANSWERED: _any("vllm:time_to_first_token_seconds_count"),
    Seen.TRANSFERS: _any("vllm:nixl_xfer_time_seconds_count"),
    Seen.TRANSFER_S: _any("vllm:nixl_xfer_time_seconds_sum"),
    Seen.TRANSFER_BYTES: _any("vllm:nixl_bytes_transferred_sum"),
    Seen.TRANSFERS_FAILED: _any("vllm:nixl_num_failed_transfers_total"),
}
_VLLM_ON_RAY: _Table = {
    seen: tuple((_Term(term.name.replace("vllm:", "ray_vllm_")),) for (term,) in sums)
    for seen, sums in _VLLM.items()
    if not any(term.name.endswith("_sum") for (term,) in sums)
}
"""As Ray's nodes tell it. Sums of histograms are not taken: Ray makes them up from the middles of buckets."""
_SGLANG: _Table = {
    Seen.RUNNING: _any("sglang:num_running_reqs"),
    Seen.WAITING: _any("sglang:num_queue_reqs"),
    Seen.KV_SHARE: _any("sglang:token_usage"),
    Seen.PREFIX_QUERIES: _any("sglang:prompt_tokens_total"),
    Seen.PREFIX_HITS: _any("sglang:cached_tokens_total"),
    Seen.PREFIX_SHARE: _any("sglang:cache_hit_rate"),
    Seen.PREEMPTIONS: _any("sglang:num_retracted_requests_total"),
    Seen.QUEUE_S: _any("sglang:queue_time_seconds_sum"),
    Seen.QUEUED: _any("sglang:queue_time_seconds_count"),
    Seen.PREFILL_S: _stage("sum", "prefill_forward", "chunked_prefill"),
    Seen.PREFILLED: _stage("count", "prefill_forward"),
    Seen.TTFT_S: _any("sglang:time_to_first_token_seconds_sum"),
    Seen.ANSWERED: _any("sglang:time_to_first_token_seconds_count"),
}
_TGI: _Table = {
    Seen.RUNNING: _any("tgi_batch_current_size"),
    Seen.WAITING: _any("tgi_queue_size"),
    Seen.QUEUE_S: _any("tgi_request_queue_duration_sum"),
    Seen.QUEUED: _any("tgi_request_queue_duration_count"),
}
_LLAMA_CPP: _Table = {
    Seen.RUNNING: _any("llamacpp:requests_processing"),
    Seen.WAITING: _any("llamacpp:requests_deferred"),
    Seen.KV_SHARE: _any("llamacpp:kv_cache_usage_ratio"),
}
_TRTLLM: _Table = {
    Seen.RUNNING: (
        *_any("trtllm_num_requests_running", "trtllm:num_requests_running"),
        (_Term("nv_trt_llm_request_metrics", (("request_type", "scheduled"),)),),
    ),
    Seen.WAITING: (
        *_any("trtllm_num_requests_waiting", "trtllm:num_requests_waiting"),
        (_Term("nv_trt_llm_request_metrics", (("request_type", "waiting"),)),),
    ),
    Seen.KV_SHARE: (
        *_any("trtllm_kv_cache_utilization", "trtllm:kv_cache_utilization"),
        (_Term("nv_trt_llm_kv_cache_block_metrics", (("kv_cache_block_type", "fraction"),)),),
    ),
}
"""trtllm-serve, and behind Triton."""
_GATEWAY: _Table = {
    Seen.PASSING: _any("withstand_gateway_requests_in_flight"),
    Seen.HELD: _any("withstand_gateway_queued"),
    Seen.HOP_S: _any("withstand_gateway_hop_seconds_sum"),
    Seen.HOPPED: _any("withstand_gateway_hop_seconds_count"),
}
ENGINES: Mapping[str, _Table] = {
    "vLLM": _VLLM,
    "vLLM on Ray": _VLLM_ON_RAY,
    "SGLang": _SGLANG,
    "TGI": _TGI,
    "llama.cpp": _LLAMA_CPP,
    "TensorRT-LLM": _TRTLLM,
    "withstand gateway": _GATEWAY,
}
_LOAD = (Seen.RUNNING, Seen.WAITING)


def _names(*of: Seen) -> frozenset[str]:
    return frozenset(t.name for table in ENGINES.values() for seen in of for s in table.get(seen, ()) for t in s)


_WANTED = _names(*Seen)
_LOAD_NAMES = tuple(name.encode("ascii") for name in sorted(_names(*_LOAD)))


def read_load(raw: bytes) -> float | None:
    """Requests that run or wait, from a page of metrics; None where it says neither.

    A page may have thousands of lines of histograms: only those that matter are taken apart.
    """
    _, values = read_engine(b"\n".join(_lines(b"\n" + raw, _LOAD_NAMES)).decode("utf-8", "replace"))
    said = [values[seen] for seen in _LOAD if seen in values]
    return math.fsum(said) if said else None


def _lines(raw: bytes, names: Iterable[bytes]) -> Iterator[bytes]:
    """Those that begin with one of the names."""
    for name in names:
        start = raw.find(b"\n" + name)
        while start >= 0:
            end = raw.find(b"\n", start + 1)
            yield raw[start + 1 : end if end >= 0 else len(raw)]
            start = raw.find(b"\n" + name, end) if end >= 0 else -1


def read_engine(text: str) -> tuple[str | None, dict[Seen, float]]:
    """(The engine whose names are there, what it says); (None, {}) where nothing is known."""
    found: dict[str, list[Series]] = {}
    for series in read_series(text, _WANTED):
        if not _is_part(series) and math.isfinite(series.value):
            found.setdefault(series.name, []).append(series)
    for engine, table in ENGINES.items():
        values = {seen: value for seen, sums in table.items() if (value := _first(seen, sums, found)) is not None}
        if values:
            return engine, values
    return None, {}


def _is_part(series: Series) -> bool:
    """What another series has in it already: SGLang's priorities beside their sum, and ranks that tell the same."""
    if series.labels.get("priority"):
        return True
    return "dp_rank" not in series.labels and any(series.labels.get(rank, "0") != "0" for rank in _RANKS)


def _first(seen: Seen, sums: Iterable[_Sum], found: Mapping[str, list[Series]]) -> float | None:
    for first, *others in sums:
        values = _of(first, found)
        if values:
            return _together(seen, [*values, *(value for term in others for value in _of(term, found))])
    return None


def _of(term: _Term, found: Mapping[str, list[Series]]) -> list[float]:
    return [series.value for series in found.get(term.name, ()) if term.is_of(series)]


def _together(seen: Seen, values: list[float]) -> float | None:
    """A share outside of 0 … 1, or a count below 0, is an engine's way of saying that it does not know."""
    value = fmean(values) if seen in _SHARES else math.fsum(values)
    if value < 0 or not math.isfinite(value) or (seen in _SHARES and value > 1):
        return None
    return value
