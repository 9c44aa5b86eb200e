"""Sides with long names are called by letters on a terminal: in its tables and in all that is said below them."""

from collections.abc import Sequence

import msgspec

from withstand.compare.shape import Decision
from withstand.report import comparison_words as words
from withstand.report.standing import Case, Heard


class Brief(msgspec.Struct, frozen=True):
    """Labels and what stands for them, the same where they are short."""

    labels: tuple[str, ...]
    short: tuple[str, ...]

    def text(self, said: str) -> str:
        """With letters for long labels; the longest first, since another may be a part of it."""
        for label, short in sorted(zip(self.labels, self.short, strict=True), key=_length):
            said = said if label == short else said.replace(label, short)
        return said

    def doubt(self, heard: Heard) -> Heard:
        """The same, in all that is said of it."""
        cases = (Case(self.text(c.sentence), tuple(map(self.text, c.stages)), self.text(c.brief)) for c in heard.cases)
        return msgspec.structs.replace(heard, cases=tuple(cases))

    def decision(self, made: Decision) -> Decision:
        """The same."""
        winner = self.text(made.winner) if made.winner else None
        return msgspec.structs.replace(made, winner=winner, evidence=self.text(made.evidence))


def brief_of(labels: Sequence[str], most: int) -> Brief:
    """Letters for labels of more than ``most`` characters, each by its place; none that is a label itself."""
    letters = [words.letter(place).upper() for place in range(1, len(labels) + 1)]
    letters = [f"side {letter}" if letter in labels else letter for letter in letters]
    short = (label if len(label) <= most else letter for label, letter in zip(labels, letters, strict=True))
    return Brief(tuple(labels), tuple(short))


def _length(pair: tuple[str, str]) -> int:
    return -len(pair[0])
