"""``vllm bench serve``.

TTFT ends with the first chunk of any kind, so a role chunk ends it; the step from that chunk to the first token is one
of the ITLs. TPOT is (E2EL - TTFT) / (tokens - 1).
"""

from pathlib import Path
from typing import Final

from benchmarks.peers.client import Case, Command, Said, options, result_json, said_in_vllm_s_words
from benchmarks.peers.home import program

# The package of the build for the CPU has no ``vllm`` program that starts: its metadata bear another name.
_MAIN: Final = (
    "import argparse; from vllm.benchmarks.serve import add_cli_args, main; "
    "p = argparse.ArgumentParser(); add_cli_args(p); main(p.parse_args())"
)


class Vllm:
    """The adapter."""

    name = "vllm"
    environment = "vllm"
    version = "0.32.0"
    keeps_rate = True
    keeps_count = True

    def command(self, case: Case) -> Command:
        """Called as a module; a high burstiness makes the rate constant."""
        load: dict[str, object] = {"--max-concurrency": case.concurrency}
        if case.rate_rps is not None:
            load = {"--request-rate": case.rate_rps, "--burstiness": 100_000}
        argv = options(
            {
                "--backend": "openai-chat",
                "--base-url": case.base_url,
                "--endpoint": "/v1/chat/completions",
                "--model": case.tokenizer,
                "--served-model-name": case.model,
                "--tokenizer": case.tokenizer,
                "--dataset-name": "random",
                "--random-input-len": case.input_tokens,
                "--random-output-len": case.output_tokens,
                "--num-prompts": case.requests,
                "--seed": 1,
                "--ignore-eos": True,
                "--percentile-metrics": "ttft,tpot,itl,e2el",
                "--metric-percentiles": "50,99",
                "--save-result": True,
                "--result-dir": case.folder,
                "--result-filename": "vllm.json",
                "--disable-tqdm": True,
                **load,
            }
        )
        return Command((program("vllm", "python"), "-c", _MAIN, *argv), {"VLLM_LOGGING_LEVEL": "WARNING"})

    def parse(self, folder: Path) -> Said:
        """Its result file; without a completed request it writes zeros for times that it has not."""
        return said_in_vllm_s_words(result_json(folder, "vllm.json"))
