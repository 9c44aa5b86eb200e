"""``sonnet``: lines of a poem (or any text) in random order behind a common beginning, as vLLM's bench had it."""

from collections.abc import Iterator
from random import Random
from typing import Annotated

import msgspec

from withstand.errors import SpecError
from withstand.spec import TOKENS_MAX, Workload
from withstand.workload.dataset import Dataset, read_options
from withstand.workload.datasets.made_up import MadeUp
from withstand.workload.files import read_text
from withstand.workload.seed import Seed
from withstand.workload.tokenizers import Tokenizer
from withstand.workload.wording import Wording

_ASK = "Pick as many lines as you can from these poem lines:\n"
Tokens = Annotated[int, msgspec.Meta(ge=1, le=TOKENS_MAX)]


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths in tokens; the first ``prefix_len`` of a prompt are the same in all."""

    input_len: Tokens = 550
    output_len: Tokens = 150
    prefix_len: Annotated[int, msgspec.Meta(ge=0, le=TOKENS_MAX)] = 200


def open_dataset(workload: Workload, tokenizer: Tokenizer, seed: Seed) -> Dataset:
    """Endless prompts out of the file's lines.

    Raises:
        DatasetError: no text.
        SpecError: a prefix longer than the prompt.
    """
    options = read_options(workload, Options)
    if options.prefix_len >= options.input_len:
        raise SpecError(
            "The plan is wrong: sonnet's prefix must be shorter than input_len - at `$.workload.options.prefix_len`."
        )
    text = read_text(workload.path, "sonnet", "a text file with a line of verse a line")
    lines = [line + "\n" for line in text.splitlines() if line.strip()]
    poem = _Poem(lines, tokenizer, options, Random(f"{seed.words}/lines"))

    def lengths() -> Iterator[tuple[int, int]]:
        while True:
            yield options.input_len, options.output_len

    return MadeUp(
        "sonnet", lengths, poem.write, ignore_eos=workload.ignore_eos is not False, one_by_one=tokenizer.remote
    )


class _Poem:
    """Lines with their tokens."""

    def __init__(self, lines: list[str], tokenizer: Tokenizer, options: Options, random: Random) -> None:
        self._lines = list(zip(lines, tokenizer.counts(lines), strict=True))
        self._words = Wording(tokenizer)
        self._random = random
        self._options = options
        self._ask_tokens = tokenizer.counts([_ASK])[0]
        self._prefix, self._prefix_tokens = self._filled(iter(self._lines), self._ask_tokens, options.prefix_len)

    def write(self, lengths: list[int]) -> list[str]:
        """Prompts of exactly the lengths: lines as long as they fit, then a few words more."""
        texts = []
        for length in lengths:
            chosen = iter(lambda: self._random.choice(self._lines), None)
            body, _ = self._filled(chosen, self._prefix_tokens, length)
            texts.append((_ASK + self._prefix + body).rstrip("\n"))
        return self._words.mended(texts, lengths)

    @staticmethod
    def _filled(lines: Iterator[tuple[str, int]], tokens: int, limit: int) -> tuple[str, int]:
        """(Lines, tokens so far) until the next one would go beyond the limit."""
        parts = []
        for line, count in lines:
            if tokens + count > limit:
                break
            parts.append(line)
            tokens += count
        return "".join(parts), tokens
