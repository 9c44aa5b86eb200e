"""All the ways to answer by name, one by one, together and in a mixture.

Several at once: ``reasoning:8+split+crlf``. Where a behaviour takes a number, it stands behind the colon.
"""

import math
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from random import Random
from typing import Final

from withstand.errors import UsageError
from withstand.hints import meant
from withstand.testing.truth.behaviour import Behaviour
from withstand.testing.truth.faults import FAULTS
from withstand.testing.truth.manners import MANNERS
from withstand.testing.truth.style import Style

BEHAVIOURS: Final[Mapping[str, Behaviour]] = {**MANNERS, **FAULTS}
_BLOCKS = (1, 10, 100, 1000, 10_000)

Mix = Mapping[str, float]


@cache
def style_of(text: str) -> Style:
    """The style of ``reasoning:8+crlf``.

    Raises:
        UsageError: an unknown behaviour, or a number that is none.
    """
    style = Style()
    for behaviour, number in parts_of(text):
        style = behaviour.change(style, number)
    return style


@cache
def parts_of(text: str) -> list[tuple[Behaviour, float | None]]:
    """Each behaviour of ``reasoning:8+crlf`` with its number.

    Raises:
        UsageError: an unknown behaviour, or a number that is none.
    """
    return [_part(part) for part in text.split("+")]


def _part(text: str) -> tuple[Behaviour, float | None]:
    name, _, number = text.partition(":")
    behaviour = BEHAVIOURS.get(name)
    if behaviour is None:
        hint = meant(name, BEHAVIOURS)
        raise UsageError(f"behaviour: {name!r} is unknown{hint}; `withstand truth-server --list-behaviours` lists all.")
    return behaviour, _number(name, behaviour, number)


def _number(name: str, behaviour: Behaviour, text: str) -> float | None:
    if not text:
        return behaviour.default
    if not behaviour.number:
        raise UsageError(f"behaviour: {name!r} takes no number; leave out :{text}.")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise UsageError(f"behaviour: {text!r} is no number for {name!r}; it means {behaviour.number}.")
    return number


def check_mix(mix: Mix) -> None:
    """Refuse shares that cannot be exact.

    Raises:
        UsageError: an unknown behaviour, shares that are no multiples of 0.0001 or that do not sum to 1.
    """
    for behaviour in mix:
        style_of(behaviour)
    _block_size(tuple(mix.values()))


def chosen(mix: Mix, seed: int, number: int) -> str:
    """The behaviour of request ``number``: exact shares in every block, shuffled by seed."""
    names = _block(tuple(mix.items()), seed, number // _block_size(tuple(mix.values())))
    return names[number % len(names)]


def tally(mix: Mix, seed: int, requests: int) -> Counter[str]:
    """How often each behaviour meets the first ``requests``, known beforehand."""
    return Counter(chosen(mix, seed, number) for number in range(requests))


@cache
def _block_size(shares: tuple[float, ...]) -> int:
    for size in _BLOCKS:
        counts = [share * size for share in shares]
        if all(
            0 <= share <= 1 and abs(count - round(count)) < 1e-6 for share, count in zip(shares, counts, strict=True)
        ):
            if round(sum(counts)) != size:
                break
            return size
    raise UsageError(f"behaviour: the shares {list(shares)} must be multiples of 0.0001 that sum to 1.")


@lru_cache(maxsize=64)
def _block(mix: tuple[tuple[str, float], ...], seed: int, block: int) -> list[str]:
    size = _block_size(tuple(share for _, share in mix))
    names = [name for name, share in mix for _ in range(round(share * size))]
    Random(seed * 1_000_003 + block).shuffle(names)
    return names


def table() -> str:
    """The behaviours as Markdown, for the documentation."""
    rows = ["| behaviour | number (default) | what the server does | status | what a right client reports |"]
    rows.append("| --- | --- | --- | --- | --- |")
    for name, b in BEHAVIOURS.items():
        default = "" if b.default is None else f" ({b.default:g})"
        rows.append(f"| `{name}` | {b.number}{default} | {b.does} | `{b.status.value}` | {b.client} |")
    return "\n".join(rows)
