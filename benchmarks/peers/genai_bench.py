"""genai-bench.

Closed loop only, and whatever is in flight at the end is broken off. It reports no ITL.
"""

from pathlib import Path

from benchmarks.peers.client import Case, Command, ReportError, Said, count, number, options, result_json, spread
from benchmarks.peers.home import program


class GenaiBench:
    """The adapter."""

    name = "genai-bench"
    environment = "genai-bench"
    version = "0.0.5"
    keeps_rate = False
    keeps_count = False

    def command(self, case: Case) -> Command:
        """As many users as requests may be open at once."""
        argv = options(
            {
                "--api-backend": "vllm",
                "--api-base": case.base_url,
                "--api-key": "none",
                "--api-model-name": case.model,
                "--model": case.model,
                "--model-tokenizer": case.tokenizer,
                "--task": "text-to-text",
                "--iteration-type": "num_concurrency",
                "--num-concurrency": case.concurrency,
                "--traffic-scenario": f"D({case.input_tokens},{case.output_tokens})",
                "--max-requests-per-run": case.requests,
                "--max-time-per-run": 2,
                "--experiment-base-dir": case.folder,
                "--experiment-folder-name": "genai",
                "--num-workers": 0,
                "--spawn-rate": max(100, case.concurrency),
                "--metrics-time-unit": "ms",
            }
        )
        return Command((program(self.name, "genai-bench"), "benchmark", *argv))

    def parse(self, folder: Path) -> Said:
        """The file of its only run."""
        report = result_json(folder, "D*_concurrency_*.json").get("aggregated_metrics")
        if report is None:
            raise ReportError("no aggregated metrics")
        stats = report.get("stats") or {}
        ttft, tpot, e2el = (spread(stats.get(m), "mean", "p50", "p99") for m in ("ttft", "tpot", "e2e_latency"))
        return Said(
            completed=count(report, "num_completed_requests"),
            failed=count(report, "num_error_requests"),
            output_tokens=count(stats.get("num_output_tokens"), "sum"),
            request_rate_rps=number(report, "requests_per_second"),
            ttft_ms=ttft,
            tpot_ms=tpot,
            e2el_ms=e2el,
        )
