"""withstand itself, called as its users call it, from the environment that runs this."""

import sys
from pathlib import Path

import withstand
from benchmarks.peers.client import Case, Command, ReportError, Said, count, number, result_json, spread


class Withstand:
    """The adapter."""

    name = "withstand"
    version = withstand.__version__
    keeps_rate = True

    def command(self, case: Case) -> Command:
        """One worker, as the others have one process that sends."""
        load = ("--max-concurrency", str(case.concurrency))
        if case.rate_rps is not None:
            load = ("--set", f'stages=[{{"arrivals":{{"kind":"constant","rate":{case.rate_rps}}}}}]')
        argv = (sys.executable, "-m", "withstand", "run", "--base-url", case.base_url, "--model", case.model, *load)
        argv += ("--num-prompts", str(case.requests), "--input-len", str(case.input_tokens), "--workers", "1")
        argv += ("--output-len", str(case.output_tokens), "--tokenizer", str(case.tokenizer / "tokenizer.json"))
        argv += ("--num-warmups", "0", "--quiet", "--output-dir", str(case.folder / "withstand"))
        return Command(argv, {"PYTHONPATH": str(Path(withstand.__file__).parents[1])})

    def parse(self, folder: Path) -> Said:
        """The only stage of its summary."""
        stages = result_json(folder, "summary.json").get("stages")
        if not stages:
            raise ReportError("no stage")
        stage = stages[0]
        ttft, tpot, itl, e2el = (
            spread(stage, f"mean_{m}_ms", f"median_{m}_ms", f"p99_{m}_ms") for m in ("ttft", "tpot", "itl", "e2el")
        )
        return Said(
            completed=count(stage, "completed"),
            failed=count(stage, "failed"),
            output_tokens=count(stage, "total_output_tokens"),
            request_rate_rps=number(stage, "request_throughput"),
            ttft_ms=ttft,
            tpot_ms=tpot,
            itl_ms=itl,
            e2el_ms=e2el,
        )
