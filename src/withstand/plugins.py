"""Name → object, for the kinds that others may add to: wires, datasets, engines, an agent's searches.

A literal table is asked first, then the entry points ``withstand.<kind>`` of installed packages.
It knows nothing of what the objects do; whoever loads one checks its shape by using it.
"""

import importlib
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Literal

from withstand.errors import UsageError
from withstand.hints import near

Kind = Literal["wire", "datasets", "engines", "searches"]

BUILT_IN: Mapping[Kind, Mapping[str, str]] = {
    "wire": {
        "openai-chat": "withstand.wire.openai_chat:DIALECT",
        "openai": "withstand.wire.openai_completions:DIALECT",
        "vllm": "withstand.wire.openai_completions:DIALECT",
    },
    "datasets": {
        "random": "withstand.workload.datasets.random:open_dataset",
        "synthetic": "withstand.workload.datasets.synthetic:open_dataset",
        "sharegpt": "withstand.workload.datasets.sharegpt:open_dataset",
        "openai-jsonl": "withstand.workload.datasets.openai_jsonl:open_dataset",
        "sonnet": "withstand.workload.datasets.sonnet:open_dataset",
        "prefix-repetition": "withstand.workload.datasets.prefix_repetition:open_dataset",
        "conversations": "withstand.workload.datasets.conversations:open_dataset",
        "azure-trace": "withstand.workload.datasets.azure_trace:open_dataset",
        "mooncake-trace": "withstand.workload.datasets.mooncake_trace:open_dataset",
        "mt-bench": "withstand.workload.datasets.mt_bench:open_dataset",
        "agent": "withstand.workload.datasets.agent:open_dataset",
    },
    "engines": {
        "llamacpp": "withstand.stack.engines.llamacpp:ENGINE",
        "vllm": "withstand.stack.engines.vllm:ENGINE",
        "sglang": "withstand.stack.engines.sglang:ENGINE",
        "tgi": "withstand.stack.engines.tgi:ENGINE",
        "trtllm": "withstand.stack.engines.trtllm:ENGINE",
        "transformers": "withstand.stack.engines.transformers:ENGINE",
        "ollama": "withstand.stack.engines.ollama:ENGINE",
        "command": "withstand.stack.engines.command:ENGINE",
        "remote": "withstand.stack.engines.remote:ENGINE",
        "sim": "withstand.stack.engines.sim:ENGINE",
    },
    "searches": {
        "corpus": "withstand.agent.tools.search:Corpus",
        "searxng": "withstand.agent.tools.search:SearXNG",
    },
}


def names(kind: Kind) -> list[str]:
    """Every known name of a kind, sorted."""
    return sorted({*BUILT_IN[kind], *(e.name for e in metadata.entry_points(group=f"withstand.{kind}"))})


def load(kind: Kind, name: str, field: str) -> Any:
    """The object called ``name``; ``field`` is what the user set, for the error.

    Raises:
        UsageError: nothing has that name.
    """
    if target := BUILT_IN[kind].get(name):
        module, _, attribute = target.partition(":")
        return getattr(importlib.import_module(module), attribute)
    for entry in metadata.entry_points(group=f"withstand.{kind}", name=name):
        return entry.load()
    known = names(kind)
    raise UsageError(f"{field}: {name!r} is unknown{near(name, known)}; choose one of {', '.join(known)}.")
