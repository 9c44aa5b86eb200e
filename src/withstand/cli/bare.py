"""What a bare ``withstand run`` sends: the small model on this machine's cores is not for loads made for a server."""

from collections.abc import Mapping
from typing import Any

Tree = dict[str, Any]
NUM_PROMPTS = 50
LENGTHS = {"input_len": 128, "output_len": 32}
_SAID = ("dataset_name", "dataset_path", *LENGTHS)
_ENDS = ("num_prompts", "duration", "budget_s")


def bare_plan(options: Mapping[str, Any]) -> Tree:
    """The plan of a run without a file: empty, but for the embedded engine's, with what was not typed of sizes."""
    typed = options.get("set_path") or ()
    if options.get("base_url") is not None or any(text.startswith(("target", "workload", "stages")) for text in typed):
        return {}
    workload: Tree = {}
    if all(options.get(name) is None for name in _SAID):
        workload["options"] = dict(LENGTHS)
    if all(options.get(name) is None for name in _ENDS):
        workload["num_prompts"] = NUM_PROMPTS
    return {"workload": workload} if workload else {}
