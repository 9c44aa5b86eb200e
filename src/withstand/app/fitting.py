"""Whether a stage's requests are longer than the server takes, where the plan makes them up. Pure."""

import math

from withstand.spec import Stage, Workload
from withstand.workload.dataset import read_options
from withstand.workload.datasets import conversations, prefix_repetition, random, synthetic

TEMPLATE_TOKENS = 64
"""For what a chat template adds, and for a tokenizer that counts a little otherwise."""


def tokens_of(stage: Stage) -> int | None:
    """Prompt and answer of the stage's longest request together; None = the plan does not tell."""
    assert stage.workload is not None
    workload = stage.workload
    if workload.path is not None:
        return None
    count = _BY_DATASET.get(workload.dataset)
    return count(workload) if count else None


def too_long(stage: Stage, context: int | None) -> bool:
    """Whether the server, whose context has so many tokens (None = it does not say), cannot take the stage."""
    tokens = tokens_of(stage)
    return context is not None and tokens is not None and tokens + TEMPLATE_TOKENS > context


def _random(workload: Workload) -> int:
    options = read_options(workload, random.Options)
    return options.prefix_len + math.ceil((options.input_len + options.output_len) * (1 + options.range_ratio))


def _synthetic(workload: Workload) -> int:
    options = read_options(workload, synthetic.Options)
    return options.input_len + options.output_len


def _prefix_repetition(workload: Workload) -> int:
    options = read_options(workload, prefix_repetition.Options)
    return options.prefix_len + options.suffix_len + options.output_len


def _conversations(workload: Workload) -> int:
    """The last turn carries all before it."""
    options = read_options(workload, conversations.Options)
    longer = 1 + options.range_ratio
    turns = math.ceil(options.turns * longer)
    answers = turns * (options.output_len or conversations.OUTPUT_LEN)
    said = options.first_len + (turns - 1) * options.later_len
    return options.system_len + math.ceil((said + answers) * longer)


_BY_DATASET = {
    "random": _random,
    "synthetic": _synthetic,
    "prefix-repetition": _prefix_repetition,
    "conversations": _conversations,
}
