"""A tokenizer that says how far it is: counting tokens is what takes long before a load, above all by the engine."""

from collections.abc import Sequence

from withstand import clock
from withstand.app.screen import Screen
from withstand.workload import Tokenizer

PROMPTS = "Counting the prompts' tokens"
ANSWERS = "Counting the answers' tokens"
_SILENT_NS = 1_000_000_000
_BATCH = 64


class AloudTokenizer:
    """Counts as the other does; after a second of it the screen is told. While a stage runs it is silent."""

    def __init__(self, tokenizer: Tokenizer, screen: Screen) -> None:
        self.name = tokenizer.name
        self.exact = tokenizer.exact
        self.remote = tokenizer.remote
        self._tokenizer = tokenizer
        self._screen = screen
        self._label = PROMPTS
        self._counted = 0
        self._began_ns: int | None = None
        self._told = False

    def begin(self, label: str = PROMPTS) -> None:
        """Something is counted, while nothing is measured."""
        self._label = label
        self._counted, self._began_ns, self._told = 0, clock.now_ns(), False

    def end(self) -> None:
        """It is ready."""
        if self._told:
            self._screen.step(self._label, self._counted, self._counted)
        self._began_ns, self._told = None, False

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        counts: list[int] = []
        for start in range(0, len(texts), _BATCH):
            counts += self._tokenizer.counts(texts[start : start + _BATCH])
            self._tell(len(texts[start : start + _BATCH]))
        return counts

    def _tell(self, more: int) -> None:
        self._counted += more
        if self._began_ns is not None and clock.now_ns() - self._began_ns > _SILENT_NS:
            self._told = True
            self._screen.step(self._label, self._counted, None)
