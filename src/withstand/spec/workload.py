"""WHAT is sent: a dataset by name, how many prompts, and who counts their tokens."""

from typing import Annotated, Any

import msgspec

PROMPTS_MAX = 1_000_000_000
TOKENS_MAX = 10_000_000
"""Of one prompt or answer: beyond any model's context."""


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A seeded stream of prompts. ``options`` are the dataset's own and are checked by it."""

    dataset: str = "random"
    path: str | None = None
    num_prompts: Annotated[int, msgspec.Meta(ge=1, le=PROMPTS_MAX)] = 100
    """For conversations, a prompt is a whole conversation."""
    repeat: bool = False
    """Begin again at the first row when the dataset is smaller than ``num_prompts``."""
    tokenizer: str = "auto"
    """``auto`` (the engine's /tokenize, else tiktoken, else an estimate), ``engine``, ``tiktoken``, ``estimate``,
    or the path of a Hugging Face ``tokenizer.json`` or its folder."""
    ignore_eos: bool | None = None
    """None = where the dataset prescribes an output length."""
    min_tokens: bool = False
    """Send ``min_tokens`` as well, for engines without ``ignore_eos``."""
    options: dict[str, Any] = {}
