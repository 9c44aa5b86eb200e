"""inference-perf.

Its constant rate is drawn at random and normalised. For chat it has no prompts of a given length: they are a few words,
and the model's name tells the truth server how long the answer shall be. Its ITL is by token, as its tokenizer cuts the
text: those of one event are 0 apart.
"""

import json
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.client import Case, Command, Said, Spread, count, number, result_json, spread
from benchmarks.peers.home import program

_SUMMARY: Final = {"summary": True, "per_stage": False, "per_request": False, "use_server_output_tokens": True}


class InferencePerf:
    """The adapter."""

    name = "inference-perf"
    environment = "inference-perf"
    version = "0.7.0"
    keeps_rate = False
    keeps_count = True

    def command(self, case: Case) -> Command:
        """A configuration file says it all; JSON is YAML too."""
        argv = (program(self.name, "inference-perf"), "-c", str(case.folder / "config.yml"))
        return Command(argv, files={"config.yml": json.dumps(_configuration(case))})

    def parse(self, folder: Path) -> Said:
        """Its summary of all stages; it counts in seconds."""
        report = result_json(folder, "summary_lifecycle_metrics.json")
        good = report.get("successes") or {}
        latency = good.get("latency") or {}
        return Said(
            completed=count(good, "count"),
            failed=count(report.get("failures"), "count"),
            output_tokens=count(good.get("output_tokens"), "total"),
            request_rate_rps=number(good.get("throughput"), "requests_per_sec"),
            ttft_ms=_spread(latency, "time_to_first_token"),
            tpot_ms=_spread(latency, "time_per_output_token"),
            itl_ms=_spread(latency, "inter_token_latency"),
            e2el_ms=_spread(latency, "request_latency"),
        )


def _configuration(case: Case) -> dict[str, Any]:
    model = case.model if ":" in case.model else f"{case.model}:n={case.output_tokens}"
    kind, stage = "concurrent", dict[str, float](num_requests=case.requests, concurrency_level=case.concurrency)
    if case.rate_rps is not None:
        kind = "constant"
        stage = dict[str, float](rate=case.rate_rps, duration=max(1, round(case.requests / case.rate_rps)))
    load = {"type": kind, "num_workers": 1, "worker_max_concurrency": 5000, "interval": 1, "stages": [stage]}
    load["request_timeout"] = case.timeout_s
    return {
        "api": {"type": "chat", "streaming": True},
        "data": {"type": "mock"},
        "load": load,
        "server": {"type": "vllm", "model_name": model, "base_url": case.base_url, "ignore_eos": True},
        "tokenizer": {"pretrained_model_name_or_path": str(case.tokenizer)},
        "report": {"request_lifecycle": _SUMMARY},
        "storage": {"local_storage": {"path": str(case.folder / "inference-perf")}},
    }


def _spread(latency: dict[str, Any], name: str) -> Spread:
    return spread(latency.get(name), "mean", "median", "p99", 1e3)
