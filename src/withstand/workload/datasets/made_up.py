"""What datasets of made-up texts share: endless sessions of one turn, made in batches."""

import itertools
from collections.abc import Callable, Iterator

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


class MadeUp:
    """Endless: ``lengths`` gives (input, output) tokens, ``write`` a text for each of a batch of inputs."""

    timed = False
    finite = False

    def __init__(
        self,
        name: str,
        lengths: Callable[[], Iterator[tuple[int, int]]],
        write: Callable[[list[int]], list[str]],
        *,
        ignore_eos: bool,
    ) -> None:
        self.name = name
        self._lengths = lengths
        self._write = write
        self._ignore_eos = ignore_eos

    def sessions(self) -> Iterator[Session]:
        """Made as they are drawn."""
        lengths = self._lengths()
        size = 1
        while batch := list(itertools.islice(lengths, size)):
            texts = self._write([input_len for input_len, _ in batch])
            for text, (input_len, output_len) in zip(texts, batch, strict=True):
                yield one_turn(text, input_len, output_len, ignore_eos=self._ignore_eos)
            size = max(1, min(2 * size, _BATCH, _BATCH_TOKENS // max(1, batch[-1][0])))

    def shortage(self) -> str:
        """There is none."""
        return ""
