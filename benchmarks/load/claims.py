"""What must hold, as numbers: a claim, its limit, what was found; several rounds of a cell as one. Pure."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

NOT_MEASURED = "not measured: run longer"


class Claim(NamedTuple):
    """One number that a cell found, nan = too little was read for one; ``limit`` None = for information."""

    what: str
    got: float
    unit: str = ""
    limit: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool | None:
        """None = nothing was asked. What could not be measured does not hold."""
        if self.limit is None:
            return None
        return self.got >= self.limit if self.at_least else self.got <= self.limit

    @property
    def want(self) -> str:
        """The limit as people write it."""
        if self.limit is None:
            return ""
        return f"{'≥' if self.at_least else '≤'} {number(self.limit)} {self.unit}".rstrip()


class Cell(NamedTuple):
    """The claims of one cell, and under what conditions they were found."""

    title: str
    claims: list[Claim]
    conditions: list[str]


def as_table(name: str, rounds: Sequence[Cell]) -> str:
    """Markdown: the medians of the rounds, with their range where there are several."""
    lines = [f"### {name}: {rounds[0].title}", "", "| claim | want | got | holds |", "| --- | --- | --- | --- |"]
    for claims in _by_claim(rounds):
        middle = _median(claims)
        verdict = "" if math.isnan(middle.got) else {None: "", True: "yes", False: "**no**"}[middle.holds]
        lines.append(f"| {middle.what} | {middle.want} | {_got(claims)} | {verdict} |")
    return "\n".join([*lines, "", *(f"- {line}" for cell in rounds for line in cell.conditions), ""])


def all_hold(rounds: Sequence[Cell]) -> bool:
    """Whether the medians keep every limit."""
    return all(_median(claims).holds is not False for claims in _by_claim(rounds))


def _by_claim(rounds: Sequence[Cell]) -> list[tuple[Claim, ...]]:
    return list(zip(*(cell.claims for cell in rounds), strict=True))


def _median(claims: Sequence[Claim]) -> Claim:
    """Of the rounds that found a number."""
    known = [claim.got for claim in claims if not math.isnan(claim.got)]
    return claims[0]._replace(got=statistics.median(known) if known else math.nan)


def _got(claims: Sequence[Claim]) -> str:
    middle = _median(claims)
    if math.isnan(middle.got):
        return NOT_MEASURED
    text = f"{number(middle.got)} {middle.unit}".rstrip()
    if len(claims) == 1:
        return text
    found = [claim.got for claim in claims if not math.isnan(claim.got)]
    return f"{text} ({number(min(found))} … {number(max(found))})"


def number(value: float) -> str:
    """Three digits that matter, never in powers of ten."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1 or value == 0 else f"{float(f'{value:.3g}'):.6f}".rstrip("0")
