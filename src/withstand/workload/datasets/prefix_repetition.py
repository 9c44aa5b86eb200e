"""``prefix-repetition``: a few long prefixes, each in front of many different endings: what a prefix cache is for."""

import itertools
from collections.abc import Iterator
from random import Random
from typing import Annotated

import msgspec

from withstand.spec import PROMPTS_MAX, TOKENS_MAX, Workload
from withstand.workload.dataset import Dataset, read_options
from withstand.workload.datasets.made_up import MadeUp
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer
from withstand.workload.wording import Wording

Tokens = Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths in tokens, as in vLLM's bench."""

    prefix_len: Tokens = 256
    suffix_len: Tokens = 256
    num_prefixes: Annotated[int, msgspec.Meta(ge=1, le=PROMPTS_MAX)] = 10
    output_len: Tokens = 128


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """Endless prompts; each takes one of the prefixes by chance."""
    options = read_options(workload, Options)
    words, random, draw = Wording(tokenizer), Random(f"{seed.words}/texts"), Random(f"{seed.work}/prefixes")
    prefixes = [
        words.chunk(Random(f"{seed.words}/prefix/{i}"), options.prefix_len).lstrip()
        for i in range(options.num_prefixes)
    ]

    def write(lengths: list[int]) -> list[str]:
        texts = [draw.choice(prefixes) + words.rough(random, options.suffix_len) for _ in lengths]
        return words.mended(texts, lengths)

    def lengths() -> Iterator[tuple[int, int]]:
        return itertools.repeat((options.prefix_len + options.suffix_len, options.output_len))

    return MadeUp(
        "prefix-repetition", lengths, write, ignore_eos=workload.ignore_eos is not False, one_by_one=tokenizer.remote
    )
