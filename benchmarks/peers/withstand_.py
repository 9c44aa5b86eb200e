"""withstand itself, called as its users call it, from the environment that runs this."""

import sys
from pathlib import Path

from benchmarks.peers.client import Case, Command, ReportError, Said, options, result_json, said_in_vllm_s_words

import withstand


class Withstand:
    """The adapter."""

    name = "withstand"
    environment = None
    version = withstand.__version__
    keeps_rate = True
    keeps_count = True

    def command(self, case: Case) -> Command:
        """One worker, as the others have one process that sends."""
        timeout = f"target.timeouts.total_s={case.timeout_s}"
        load: dict[str, object] = {"--max-concurrency": case.concurrency, "--set": timeout}
        if case.rate_rps is not None:
            constant = f'stages=[{{"arrivals":{{"kind":"constant","rate":{case.rate_rps}}}}}]'
            load = {"--set": (timeout, constant)}
        argv = options(
            {
                "--base-url": case.base_url,
                "--model": case.model,
                "--tokenizer": case.tokenizer / "tokenizer.json",
                "--input-len": case.input_tokens,
                "--output-len": case.output_tokens,
                "--num-prompts": case.requests,
                "--num-warmups": 0,
                "--workers": 1,
                "--output-dir": case.folder / "withstand",
                "--quiet": True,
                **load,
            }
        )
        environment = {"PYTHONPATH": str(Path(withstand.__file__).parents[1])}
        return Command((sys.executable, "-m", "withstand", "run", *argv), environment)

    def parse(self, folder: Path) -> Said:
        """The only stage of its summary."""
        stages = result_json(folder, "summary.json").get("stages")
        if not stages:
            raise ReportError("no stage")
        return said_in_vllm_s_words(stages[0])
