"""The largest load that keeps its promises, in a sentence and as the table of what was tried. Plain words."""

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from withstand.control.limit import Limit
from withstand.control.probe import Probed, Standing
from withstand.control.search import Axis
from withstand.control.share import Share
from withstand.report.numbers import UNKNOWN, percent, plain
from withstand.spec import Promise

UNITS = {Axis.RATE: "req/s", Axis.CONCURRENCY: "users at a time"}
_TOLD = {
    Standing.HOLDS: "holds",
    Standing.BREAKS: "breaks",
    Standing.GROWS: "grows: the queue has no end",
    Standing.OPEN: "open",
}
HEADINGS = ("load", "requests", "broke it", "so many may", "found")


def sentence(limit: Limit) -> str:
    """What can be promised, how sure it is, and what stands in the way of more."""
    unit = UNITS[limit.axis]
    if limit.alone is not None:
        return f"Nothing can be promised: {limit.alone.promise} is broken for one user at a time."
    low, high = limit.interval.low, limit.interval.high
    if low is None and high is None:
        return "Nothing is known: no load was found that keeps the promises, and none that breaks them."
    if high is None:
        return f"At least {plain(low)} {unit}: no load was found that breaks a promise."
    if low is None:
        return f"Below {plain(high)} {unit}: no load was found that keeps the promises."
    return f"{_rounded(limit)} {unit}, between {plain(low)} and {plain(high)}: above, {_first_broken(limit)}."


def _rounded(limit: Limit) -> str:
    assert limit.load is not None
    return f"{limit.load:.3g}" if limit.axis is Axis.RATE else f"{limit.load:.0f}"


def _first_broken(limit: Limit) -> str:
    return f"{limit.first_broken} breaks first" if limit.first_broken else "the queue has no end"


def promised(promises: Sequence[Promise]) -> str:
    """``p95 TTFT ≤ 500 ms and 99 % success``."""
    return " and ".join(map(str, promises))


def rows(limit: Limit) -> Iterator[tuple[str, ...]]:
    """By load: how many requests, what share of them broke the promise that is nearest to it, what was found."""
    for one in sorted(limit.probes, key=lambda one: one.load):
        told = worst(one, limit.promises)
        share, allowed = (percent(told[0].value), percent(1 - told[1].share)) if told else (UNKNOWN, UNKNOWN)
        yield plain(one.load), f"{one.look.requests:,}", share, allowed, _found(one)


def worst(one: Probed, promises: Sequence[Promise]) -> tuple[Share, Promise] | None:
    """The promise that is broken most, measured by what may break it, and by what share."""
    pairs = [(share, promise) for share, promise in zip(one.look.shares, promises, strict=False) if share]
    return max(pairs, key=lambda pair: pair[0].value / (1 - pair[1].share), default=None)


def _found(one: Probed) -> str:
    told = _TOLD[one.look.standing]
    return f"{told}: {one.look.promise}" if one.look.promise else told


def limit_json(limit: Limit) -> bytes:
    """``limit.json``, with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(limit), indent=2) + b"\n"


def print_limit(limit: Limit, console: Console) -> None:
    """The sentence first."""
    console.print()
    console.print(Text(sentence(limit), style="bold"))
    console.print(Text(f"promised: {promised(limit.promises)}", style="dim"))
    if not limit.probes:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if place == len(HEADINGS) - 1 else "right")
    for row in rows(limit):
        table.add_row(*row)
    console.print()
    console.print(table)
