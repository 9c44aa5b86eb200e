"""``random``: lengths drawn evenly from a range around a mean, as vLLM's bench does; exact under the tokenizer."""

from collections.abc import Iterator
from random import Random
from typing import Annotated

import msgspec

from withstand.spec import TOKENS_MAX, Workload
from withstand.workload.dataset import Dataset, read_options
from withstand.workload.datasets.made_up import MadeUp, drawn
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer
from withstand.workload.wording import Wording

Tokens = Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths in tokens; ``range_ratio`` r draws from len * (1 - r) to len * (1 + r)."""

    input_len: Tokens = 1024
    output_len: Tokens = 128
    range_ratio: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    prefix_len: Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)] = 0
    """Tokens at the front that all prompts share, on top of ``input_len``."""


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """Endless prompts, none like another."""
    options = read_options(workload, Options)
    words, random = Wording(tokenizer), Random(f"{seed.words}/texts")
    prefix = words.chunk(Random(f"{seed.common}/prefix"), options.prefix_len)

    def write(lengths: list[int]) -> list[str]:
        texts = [(prefix + words.rough(random, n - options.prefix_len)).lstrip() for n in lengths]
        return words.mended(texts, lengths)

    def lengths() -> Iterator[tuple[int, int]]:
        draw = Random(f"{seed.work}/lengths")
        while True:
            own_len = drawn(draw, options.input_len, options.range_ratio)
            yield options.prefix_len + own_len, drawn(draw, options.output_len, options.range_ratio)

    return MadeUp("random", lengths, write, ignore_eos=workload.ignore_eos is not False, one_by_one=tokenizer.remote)
