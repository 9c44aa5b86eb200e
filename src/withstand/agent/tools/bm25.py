"""Ranking of passages by BM25 (Robertson and Zaragoza, 2009, with Lucene's IDF, which is never negative). Pure."""

import math
import re
from collections import Counter
from collections.abc import Sequence

K1 = 1.2
B = 0.75
_WORD = re.compile(r"\w+")
_PLAIN = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "do",
        "does",
        "for",
        "from",
        "has",
        "have",
        "how",
        "in",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "was",
        "what",
        "when",
        "where",
        "which",
        "who",
        "with",
    ]
)


def words(text: str) -> list[str]:
    """As they are compared: without case, plural s, and the commonest ones."""
    found = (word.casefold() for word in _WORD.findall(text))
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in found if word not in _PLAIN]


class Ranking:
    """An index of passages, made once."""

    def __init__(self, passages: Sequence[str]) -> None:
        self._counts = [Counter(words(passage)) for passage in passages]
        self._lengths = [counts.total() for counts in self._counts]
        self._mean = sum(self._lengths) / len(self._lengths) if self._lengths else 0.0
        self._holders = Counter(word for counts in self._counts for word in counts)

    def best(self, query: str, most: int) -> list[int]:
        """Indexes of the passages that fit, the best first; those with no word of the query are left out."""
        wanted = set(words(query))
        scored = [(self._score(i, wanted), i) for i in range(len(self._counts))]
        return [i for score, i in sorted(scored, key=lambda each: (-each[0], each[1]))[:most] if score > 0]

    def _score(self, i: int, wanted: set[str]) -> float:
        counts = self._counts[i]
        norm = K1 * (1 - B + B * self._lengths[i] / self._mean) if self._mean else K1
        return sum(self._idf(word) * counts[word] * (K1 + 1) / (counts[word] + norm) for word in wanted & counts.keys())

    def _idf(self, word: str) -> float:
        n = self._holders[word]
        return math.log(1 + (len(self._counts) - n + 0.5) / (n + 0.5))
