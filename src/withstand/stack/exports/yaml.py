"""Documents in YAML, by a library (the extra ``yaml``)."""

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from withstand.errors import UsageError


def document(tree: Any) -> str:
    """One; a text of several lines is a block, which can be read and compared.

    Raises:
        UsageError: the library is not there.
    """
    try:
        import yaml  # noqa: PLC0415  the extra `yaml`
    except ImportError:
        raise UsageError("An export in YAML needs: pip install 'withstand[yaml]'.") from None

    class Dumper(yaml.SafeDumper):
        """Knows blocks."""

    def written(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, written)
    return yaml.dump(msgspec.to_builtins(tree), Dumper=Dumper, sort_keys=False, allow_unicode=True)


def documents(trees: Iterable[Any]) -> str:
    """Several, in one file."""
    return "---\n".join(document(tree) for tree in trees)


def whole(number: float) -> int:
    """Whole seconds, for places that know no others; never fewer than meant."""
    return math.ceil(number)
