"""AIPerf.

Its "inter token latency" is our TPOT, and its "inter chunk latency" our ITL. A count of errors stands in its report only
where there were some. It takes a tokenizer from a hub cache only.
"""

from pathlib import Path
from typing import Any, Final

from benchmarks.peers.client import Case, Command, Said, Spread, count, number, result_json, spread
from benchmarks.peers.home import program
from benchmarks.peers.tokenizer import hub_cache

_NONE: Final = {"avg": 0}


class Aiperf:
    """The adapter."""

    name = "aiperf"
    version = "0.13.0"
    keeps_rate = True

    def command(self, case: Case) -> Command:
        """Its own processes go offline, and then look for the tokenizer in the cache."""
        load = ("--concurrency", str(case.concurrency))
        if case.rate_rps is not None:
            load = ("--request-rate", str(case.rate_rps), "--arrival-pattern", "constant")
        cache, tokenizer = hub_cache(case.tokenizer)
        argv = (program("aiperf", "aiperf"), "profile", "-m", case.model, "--url", case.base_url)
        argv += ("--endpoint-type", "chat", "--streaming", "--tokenizer", tokenizer, "--request-count", str(case.requests))
        argv += (*load, "--prompt-input-tokens-mean", str(case.input_tokens), "--prompt-input-tokens-stddev", "0")
        argv += ("--prompt-output-tokens-mean", str(case.output_tokens), "--prompt-output-tokens-stddev", "0")
        argv += ("--num-dataset-entries", "100", "--random-seed", "1", "--output-artifact-dir", str(case.folder / "aiperf"))
        argv += ("--no-gpu-telemetry", "--no-server-metrics", "--ui-type", "none", "--export-level", "summary")
        return Command(argv, {"HF_HOME": cache})

    def parse(self, folder: Path) -> Said:
        """Its summary."""
        report = result_json(folder, "profile_export_aiperf.json")
        return Said(
            completed=count(report.get("request_count"), "avg"),
            failed=count(report.get("error_request_count", _NONE), "avg"),
            output_tokens=count(report.get("total_output_tokens"), "avg"),
            request_rate_rps=number(report.get("request_throughput"), "avg"),
            ttft_ms=_spread(report, "time_to_first_token"),
            tpot_ms=_spread(report, "inter_token_latency"),
            itl_ms=_spread(report, "inter_chunk_latency"),
            e2el_ms=_spread(report, "request_latency"),
        )


def _spread(report: dict[str, Any], name: str) -> Spread:
    return spread(report.get(name), "avg", "p50", "p99")
