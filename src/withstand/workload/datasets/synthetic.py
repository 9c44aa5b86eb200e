"""``synthetic``: every prompt has the same length, up to 128k tokens and beyond."""

import itertools
from random import Random
from typing import Annotated

import msgspec

from withstand.spec import Workload
from withstand.workload.dataset import Dataset, read_options
from withstand.workload.datasets.made_up import MadeUp
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer
from withstand.workload.wording import Wording

Tokens = Annotated[int, msgspec.Meta(ge=1, le=2_000_000)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths in tokens."""

    input_len: Tokens = 8192
    output_len: Tokens = 256


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """Endless prompts of one length, none like another."""
    options = read_options(workload, Options)
    words, random = Wording(tokenizer), Random(f"{seed.words}/texts")
    return MadeUp(
        "synthetic",
        lambda: itertools.repeat((options.input_len, options.output_len)),
        lambda lengths: words.texts(random, lengths),
        ignore_eos=workload.ignore_eos is not False,
        one_by_one=tokenizer.remote,
    )
