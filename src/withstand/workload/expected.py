"""Whether an answer holds what is known to be right. Pure."""

import re
from collections.abc import Sequence

_THOUSANDS = re.compile(r"(?<=\d)[, \u00a0\u202f'](?=\d{3}(?!\d))")
_POINT_ZERO = re.compile(r"(?<=\d)\.0+(?!\d)")


def agrees(answer: str, expected: Sequence[str]) -> bool:
    """Any of ``expected`` stands in it as words or a number of its own: ``11`` is not in ``1911`` nor in ``11.5``.

    Without regard to case, white space, thousands separators and a fraction of nothing.
    """
    said = _plain(answer)
    return any(re.search(rf"(?<![\w.])(?<!\d,){re.escape(_plain(each))}(?!\w|[.,]\d)", said) for each in expected)


def _plain(text: str) -> str:
    return _POINT_ZERO.sub("", _THOUSANDS.sub("", " ".join(text.casefold().split())))
