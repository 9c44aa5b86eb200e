"""Documents in YAML, by a library (the extra ``yaml``)."""

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from withstand.errors import UsageError


def document(tree: Any) -> str:
    """One.

    Raises:
        UsageError: the library is not there.
    """
    try:
        return msgspec.yaml.encode(tree).decode()
    except ImportError:
        raise UsageError("An export in YAML needs: pip install 'withstand[yaml]'.") from None


def documents(trees: Iterable[Any]) -> str:
    """Several, in one file."""
    return "---\n".join(document(tree) for tree in trees)


def whole(number: float) -> int:
    """Whole seconds, for places that know no others; never fewer than meant."""
    return math.ceil(number)
