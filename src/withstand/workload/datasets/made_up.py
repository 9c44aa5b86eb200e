"""What datasets of made-up texts share: endless sessions of one turn, made in batches."""

import itertools
import math
from collections.abc import Callable, Iterator
from random import Random

from withstand.request import Message
from withstand.workload.dataset import Session, Turn

_BATCH = 32
_BATCH_TOKENS = 65_536


def one_turn(text: str, prompt_tokens: int, output_tokens: int, *, ignore_eos: bool) -> Session:
    """A session that is one request."""
    turn = Turn(
        messages=(Message(role="user", content=text),),
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        ignore_eos=ignore_eos,
    )
    return Session(turns=(turn,))


def drawn(random: Random, length: int, range_ratio: float) -> int:
    """Evenly from length * (1 - r) to length * (1 + r), rounded outwards as vLLM's bench does; at least 1.

    The inner rounding keeps 100 * 1.1 from being 111.
    """
    low = math.floor(round(length * (1 - range_ratio), 6))
    high = math.ceil(round(length * (1 + range_ratio), 6))
    return random.randint(max(1, low), high)


class MadeUp:
    """Endless: ``lengths`` gives (input, output) tokens, ``write`` a text for each of a batch of inputs."""

    timed = False
    most: int | None = None
    certain = True

    def __init__(
        self,
        name: str,
        lengths: Callable[[], Iterator[tuple[int, int]]],
        write: Callable[[list[int]], list[str]],
        *,
        ignore_eos: bool,
        one_by_one: bool = False,
    ) -> None:
        """``one_by_one``: a batch is no faster, as where each text is a question to the engine."""
        self.name = name
        self._lengths = lengths
        self._write = write
        self._ignore_eos = ignore_eos
        self._most = 1 if one_by_one else _BATCH

    def sessions(self) -> Iterator[Session]:
        """Made as they are drawn."""
        lengths = self._lengths()
        size = 1
        while batch := list(itertools.islice(lengths, size)):
            texts = self._write([input_len for input_len, _ in batch])
            for text, (input_len, output_len) in zip(texts, batch, strict=True):
                yield one_turn(text, input_len, output_len, ignore_eos=self._ignore_eos)
            size = max(1, min(2 * size, self._most, _BATCH_TOKENS // max(1, batch[-1][0])))

    def shortage(self) -> str:
        """There is none."""
        return ""
