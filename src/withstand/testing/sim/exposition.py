"""What a simulated engine says beside its answers: its metrics, by vLLM's names. Pure."""

from withstand.sim import Engine


class Times:
    """Sums of times, as a histogram's ``_sum`` and ``_count``; and of tokens."""

    def __init__(self) -> None:
        self.queue_ns = self.prefill_ns = self.ttft_ns = 0
        self.count = 0
        self.tokens = 0
        """That were said."""

    def first_token(self, arrived_ns: int, begun_ns: int, now_ns: int) -> None:
        """A request has come so far."""
        self.queue_ns += begun_ns - arrived_ns
        self.prefill_ns += now_ns - begun_ns
        self.ttft_ns += now_ns - arrived_ns
        self.count += 1


def metrics(engine: Engine, times: Times, model: str) -> bytes:
    """The page, as Prometheus reads it."""
    values = {
        "withstand_simulated": 1.0,
        "vllm:num_requests_running": float(len(engine.running)),
        "vllm:num_requests_waiting": float(len(engine.waiting)),
        "vllm:kv_cache_usage_perc": engine.kv_share,
        "vllm:num_preemptions_total": float(engine.preemptions),
        "vllm:generation_tokens_total": float(times.tokens),
        "vllm:prefix_cache_queries_total": float(engine.prefix_queries),
        "vllm:prefix_cache_hits_total": float(engine.prefix_hits),
    }
    for name, total_ns in (
        ("request_queue_time", times.queue_ns),
        ("request_prefill_time", times.prefill_ns),
        ("time_to_first_token", times.ttft_ns),
    ):
        values[f"vllm:{name}_seconds_sum"] = total_ns / 1e9
        values[f"vllm:{name}_seconds_count"] = float(times.count)
    label = model.replace("\\", "").replace('"', "")
    return "".join(f'{name}{{model_name="{label}"}} {value!r}\n' for name, value in values.items()).encode()
