"""A course as one line of blocks: as high as its largest value, a gap where nothing is known. Pure."""

from collections.abc import Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"
_GAP = " "


def sparkline(values: Sequence[float | None], width: int) -> str:
    """The last of it is on the right; where it is longer than ``width``, neighbours are put together."""
    shown = _fitted(values, width)
    highest = max((value for value in shown if value is not None), default=0.0)
    return "".join(_GAP if value is None else _block(value, highest) for value in shown)


def _block(value: float, highest: float) -> str:
    place = round(value / highest * (len(_BLOCKS) - 1)) if highest > 0 else 0
    return _BLOCKS[min(max(0, place), len(_BLOCKS) - 1)]


def _fitted(values: Sequence[float | None], width: int) -> list[float | None]:
    group = max(1, -(-len(values) // max(1, width)))
    return [_mean(values[i : i + group]) for i in range(0, len(values), group)]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
