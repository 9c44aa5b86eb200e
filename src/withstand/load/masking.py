"""Keys that a server quotes in its errors must not reach a file or a screen: they are masked where text comes in."""

from collections.abc import Iterable

MASK = "***"
_CHARS_MIN = 4


class Mask:
    """Replaces known secrets in text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {s for s in secrets if len(s) >= _CHARS_MIN}
        self._secrets = sorted(known, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without them."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text
