"""The largest load that keeps its promises, in a sentence and as the table of what was tried. Plain words."""

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from withstand.control.limit import Limit
from withstand.control.probe import Look, Probed, Standing
from withstand.control.search import Axis
from withstand.control.share import Share
from withstand.control.unsure import why_open
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
    parts = [_ends(limit), _price(limit), _own(limit), f"It ended there: {limit.ended}." if limit.ended else ""]
    return " ".join(part for part in parts if part)


def _ends(limit: Limit) -> str:
    unit = UNITS[limit.axis]
    if limit.alone is not None:
        return _of_one(limit.alone)
    if not limit.probes:
        return f"Nothing is known: no load was tried{'' if limit.ended else ' so far'}."
    low, high = limit.interval.low, limit.interval.high
    if low is None and high is None:
        return "Nothing is known: no load was found that keeps the promises, and none that breaks them."
    if high is None:
        return f"At least {plain(low)} {unit}: no load was found that breaks a promise."
    if low is None:
        return f"Below {plain(high)} {unit}: no load was found that keeps the promises. Above, {_first_broken(limit)}."
    return f"{_rounded(limit)} {unit}, between {plain(low)} and {plain(high)}: above, {_first_broken(limit)}."


def _of_one(alone: Look) -> str:
    if alone.doubt:
        return f"Nothing is known, already of one user at a time: {alone.doubt}."
    if alone.by_limiter:
        return "Nothing can be promised: a limiter refuses even one user at a time (429). It is not the engine's limit."
    return f"Nothing can be promised: {alone.promise} is broken for one user at a time."


def _rounded(limit: Limit) -> str:
    assert limit.load is not None
    return _three_digits(limit.load) if limit.axis is Axis.RATE else f"{limit.load:.0f}"


def _three_digits(load: float) -> str:
    return plain(float(f"{load:.3g}"))


def _first_broken(limit: Limit) -> str:
    if limit.by_limiter:
        return f"{limit.first_broken} is broken by a limiter (429), so this is its limit and not the engine's"
    return f"{limit.first_broken} breaks first" if limit.first_broken else "the queue has no end"


def _price(limit: Limit) -> str:
    """From which load on tokens are as cheap as was promised."""
    floor, unit = limit.floor, UNITS[limit.axis]
    if floor is None or limit.alone is not None:
        return ""
    what = f"1M output tokens cost {floor.per_million:g} at most"
    if floor.load is None:
        return f"At no load that was tried {what}."
    if limit.axis is Axis.CONCURRENCY and floor.interval.low is None:
        return f"Already for one user at a time {what}."
    kept = f"From {_three_digits(floor.load)} {unit} on {what}"
    if limit.is_worth_it is False:
        return f"{kept}: there is no load that keeps both."
    return f"{kept}{'' if limit.is_worth_it else ': whether a load keeps both is not known'}."


def _own(limit: Limit) -> str:
    """What our own client kept from being known."""
    one = limit.doubted
    return f"More is not known: at {plain(one.load)} {UNITS[limit.axis]} {one.look.doubt}." if one else ""


def promised(limit: Limit) -> str:
    """``p95 TTFT ≤ 500 ms and 99 % success``."""
    price = [f"1M output tokens ≤ {limit.floor.per_million:g}"] if limit.floor else []
    return " and ".join([*map(str, limit.promises), *price])


def rows(limit: Limit) -> Iterator[tuple[str, ...]]:
    """By load: how many requests, what share of them broke the promise that is nearest to it, what was found."""
    for one in sorted(limit.probes, key=lambda one: one.load):  # of one load, as they were tried
        told = worst(one, limit.promises)
        share, allowed = (percent(told[0].value), percent(1 - told[1].share)) if told else (UNKNOWN, UNKNOWN)
        yield plain(one.load), f"{one.look.requests:,}", share, allowed, _found(one, limit.promises)


def worst(one: Probed, promises: Sequence[Promise]) -> tuple[Share, Promise] | None:
    """The promise that is broken most, measured by what may break it, and by what share."""
    pairs = [(share, promise) for share, promise in zip(one.look.shares, promises, strict=False) if share]
    return max(pairs, key=lambda pair: pair[0].value / (1 - pair[1].share), default=None)


def _found(one: Probed, promises: Sequence[Promise]) -> str:
    told = _TOLD[one.look.standing]
    if one.look.by_limiter:
        return f"{told}: {one.look.promise} (429, {one.look.limited:,} of {one.look.requests:,})"
    if why := one.look.doubt or one.look.promise:
        return f"{told}: {why}"
    return f"{told}: {why_open(one.look, promises)}" if one.look.standing is Standing.OPEN else told


def limit_json(limit: Limit) -> bytes:
    """``limit.json``, with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(limit), indent=2) + b"\n"


def print_limit(limit: Limit, console: Console) -> None:
    """The sentence first."""
    console.print()
    console.print(Text(sentence(limit), style="bold"))
    console.print(Text(f"promised: {promised(limit)}", style="dim"))
    if not limit.probes:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if place == len(HEADINGS) - 1 else "right")
    for row in rows(limit):
        table.add_row(*row)
    console.print()
    console.print(table)
