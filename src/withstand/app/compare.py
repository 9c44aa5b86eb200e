"""Compares what was measured, whoever measured it: what ``withstand compare`` does."""

from collections.abc import Sequence

from withstand.app.subjects import sides_of
from withstand.compare.build import Options, compare
from withstand.compare.shape import Comparison


def compare_paths(arguments: Sequence[str], by: str | None, options: Options) -> Comparison:
    """Each side against the first.

    Raises:
        WithstandError: a path cannot be read, or its runs cannot be compared.
    """
    return compare(sides_of(arguments, by), options)
