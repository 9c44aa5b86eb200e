"""Documents in YAML, by a library (the extra ``yaml``)."""

import math
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from withstand.errors import UsageError, extra

_PLAIN: Final = re.compile(r"[A-Za-z/].*")
"""No number of any YAML begins so."""
_WORDS: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "infinity"})
"""What some YAML takes for something else than a text."""
_BREAKS: Final = re.compile("[\x85\u2028\u2029]")
"""Ends of lines in YAML 1.1, and none in 1.2."""


def document(tree: Any) -> str:
    """One; a text of several lines is a block, which can be read and compared. Every reader finds the same texts in it.

    Raises:
        UsageError: the library is not there.
    """
    try:
        import yaml  # noqa: PLC0415  the extra `yaml`
    except ImportError:
        raise UsageError(f"An export is YAML: {extra('yaml')}.") from None

    class Dumper(yaml.SafeDumper):
        """Knows blocks."""

    def written(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))

    Dumper.add_representer(str, written)
    return yaml.dump(msgspec.to_builtins(tree), Dumper=Dumper, sort_keys=False, allow_unicode=True)


def _style(text: str) -> str | None:
    """None = plain, or as the library must."""
    if _BREAKS.search(text):
        return '"'
    if "\n" in text:
        return "|"
    return None if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else "'"


def documents(trees: Iterable[Any]) -> str:
    """Several, in one file."""
    return "---\n".join(document(tree) for tree in trees)


def whole(number: float) -> int:
    """Whole seconds, for places that know no others; never fewer than meant."""
    return math.ceil(number)
