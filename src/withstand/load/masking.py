"""Keys that a server quotes in its errors must not reach a file or a screen: they are masked where text comes in."""

import itertools
from collections.abc import Iterable

MASK = "***"
_CHARS_MIN = 4
_CHARS_TOLD_MAX = 6


class Mask:
    """Replaces known secrets in text, and beginnings of them: a text may have been cut in the middle of one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {s for s in secrets if len(s) >= _CHARS_MIN}
        self._secrets = sorted(known, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without them."""
        for secret in self._secrets:
            text = _without(text, secret)
        return text


def _without(text: str, secret: str) -> str:
    start = secret[:_CHARS_TOLD_MAX]
    parts = text.split(start)
    return parts[0] + "".join(MASK + _behind(part, secret[len(start) :]) for part in parts[1:])


def _behind(text: str, rest: str) -> str:
    """What follows as much of the rest as the text holds."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(text, rest, strict=False))
    return text[sum(1 for _ in pairs) :]
