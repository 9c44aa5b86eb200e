"""AIPerf.

Its "inter token latency" is our TPOT, its "inter chunk latency" our ITL, its "output sequence length" our output tokens
(its "output tokens" are without the reasoning). It counts the text unless told to believe the server, as the others do.
A count of errors stands in its report only where there were some. It takes a tokenizer from a hub cache only.
"""

from pathlib import Path
from typing import Any, Final

from benchmarks.peers.client import Case, Command, Said, Spread, count, number, options, result_json, spread
from benchmarks.peers.home import program
from benchmarks.peers.tokenizer import hub_cache

_NONE: Final = {"avg": 0}


class Aiperf:
    """The adapter."""

    name = "aiperf"
    environment = "aiperf"
    version = "0.13.0"
    keeps_rate = True
    keeps_count = True

    def command(self, case: Case) -> Command:
        """Its own processes go offline, and then look for the tokenizer in the cache."""
        load: dict[str, object] = {"--concurrency": case.concurrency}
        if case.rate_rps is not None:
            load = {"--request-rate": case.rate_rps, "--arrival-pattern": "constant"}
        cache, tokenizer = hub_cache(case.tokenizer)
        argv = options(
            {
                "--model": case.model,
                "--url": case.base_url,
                "--endpoint-type": "chat",
                "--streaming": True,
                "--use-server-token-count": True,
                "--tokenizer": tokenizer,
                "--request-count": case.requests,
                "--request-timeout-seconds": case.timeout_s,
                "--prompt-input-tokens-mean": case.input_tokens,
                "--prompt-input-tokens-stddev": 0,
                "--prompt-output-tokens-mean": case.output_tokens,
                "--prompt-output-tokens-stddev": 0,
                "--num-dataset-entries": 100,
                "--random-seed": 1,
                "--output-artifact-dir": case.folder / "aiperf",
                "--export-level": "summary",
                "--no-gpu-telemetry": True,
                "--no-server-metrics": True,
                "--ui-type": "none",
                **load,
            }
        )
        return Command((program(self.name, "aiperf"), "profile", *argv), {"HF_HOME": cache})

    def parse(self, folder: Path) -> Said:
        """Its summary."""
        report = result_json(folder, "profile_export_aiperf.json")
        return Said(
            completed=count(report.get("request_count"), "avg"),
            failed=count(report.get("error_request_count", _NONE), "avg"),
            output_tokens=count(report.get("total_osl"), "avg"),
            request_rate_rps=number(report.get("request_throughput"), "avg"),
            ttft_ms=_spread(report, "time_to_first_token"),
            tpot_ms=_spread(report, "inter_token_latency"),
            itl_ms=_spread(report, "inter_chunk_latency"),
            e2el_ms=_spread(report, "request_latency"),
        )


def _spread(report: dict[str, Any], name: str) -> Spread:
    return spread(report.get(name), "avg", "p50", "p99")
