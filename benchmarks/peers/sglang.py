"""SGLang's ``bench_serving`` in Python, and the client in Rust that its wheel ships.

Both send at exponential intervals only, and close the loop by ``--max-concurrency``. Neither states how many requests
failed: the report knows those that completed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from benchmarks.peers.client import Case, Command, Said, options, result_json, said_in_vllm_s_words
from benchmarks.peers.home import environment_of, program

# In the place of the package's own __init__, which imports the engine. Beside a torch for the CPU no torchvision loads,
# and the modules ask for one at import: they get an empty one, after those that would use it have found none.
_WITHOUT_ENGINE: Final = """\
import sys
import types

import datasets
from transformers.utils.import_utils import is_torchvision_available


class Nothing(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        return None


is_torchvision_available()
for name in ("torchvision", "torchvision.transforms", "torchvision.transforms.functional"):
    sys.modules[name] = Nothing(name)
__path__ = [{package!r}]
"""


class Sglang:
    """The client in Python."""

    name = "sglang"
    environment = "sglang"
    version = "0.5.23"
    keeps_rate = False
    keeps_count = True
    module = "sglang.benchmark.serving"
    options: Mapping[str, object] = {}

    def command(self, case: Case) -> Command:
        """Called as a module of a package whose __init__ is left out."""
        load: dict[str, object] = {"--max-concurrency": case.concurrency}
        if case.rate_rps is not None:
            load = {"--request-rate": case.rate_rps}
        argv = options(
            {
                "--backend": "vllm-chat",
                "--base-url": case.base_url,
                "--model": case.tokenizer,
                "--served-model-name": case.model,
                "--tokenizer": case.tokenizer,
                "--dataset-name": "random-ids",
                "--random-input-len": case.input_tokens,
                "--random-output-len": case.output_tokens,
                "--random-range-ratio": 1.0,
                "--num-prompts": case.requests,
                "--warmup-requests": 0,
                "--disable-tqdm": True,
                "--output-file": case.folder / "sglang.jsonl",
                **load,
                **self.options,
            }
        )
        environment = {"PYTHONPATH": str(case.folder / "without-engine"), "SGLANG_LOG_LEVEL": "WARNING"}
        files = {"without-engine/sglang/__init__.py": _WITHOUT_ENGINE.format(package=_package())}
        return Command((program("sglang", "python"), "-m", self.module, *argv), environment, files)

    def parse(self, folder: Path) -> Said:
        """The only line of its result file."""
        return said_in_vllm_s_words(result_json(folder, "sglang.jsonl"), e2el="e2e_latency")


class SglangRust(Sglang):
    """The same command line, another program behind it."""

    name = "sglang-rust"
    module = "sglang.benchmark.rust_client"
    options: Mapping[str, object] = {"--worker-threads": 1}


def _package() -> str:
    """Where the wheel's modules lie."""
    found = sorted(environment_of("sglang").glob("lib/python3.*/site-packages/sglang"))
    return str(found[0]) if found else ""
