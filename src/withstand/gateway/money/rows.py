"""What is kept of usage: sums per key, model and day, and what each key has spent in a period. Plain data."""

from typing import NamedTuple

from msgspec import Struct


class Slot(NamedTuple):
    """Whose, of what, and on which day (UTC). Without keys the owner is the empty name."""

    owner: str
    model: str
    day: str


class Sums(Struct, kw_only=True):
    """Costs in nano-dollars; ``estimated`` counts requests whose engine did not say all of its usage."""

    requests: int = 0
    estimated: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_nusd: int = 0

    def add(self, other: "Sums") -> None:
        """So much more."""
        self.requests += other.requests
        self.estimated += other.estimated
        self.prompt_tokens += other.prompt_tokens
        self.cached_tokens += other.cached_tokens
        self.completion_tokens += other.completion_tokens
        self.cost_nusd += other.cost_nusd


SUM_NAMES = Sums.__struct_fields__

Usage = dict[Slot, Sums]
Spending = dict[tuple[str, str], int]
"""(owner, period) → nano-dollars."""


def periods_of(day: str) -> tuple[str, str, str]:
    """The names of the periods that a day belongs to: itself, its month, all time."""
    return day, day[:7], "total"


def spending_of(usage: Usage) -> Spending:
    """What these sums add to each key's periods."""
    spent: Spending = {}
    for slot, sums in usage.items():
        for period in periods_of(slot.day):
            spent[slot.owner, period] = spent.get((slot.owner, period), 0) + sums.cost_nusd
    return spent


def merge(into: Usage, more: Usage) -> None:
    """Add up."""
    for slot, sums in more.items():
        add(into, slot, sums)


def add(into: Usage, slot: Slot, sums: Sums) -> None:
    """So much more of one."""
    found = into.get(slot)
    if found is None:
        found = into[slot] = Sums()
    found.add(sums)


def between(usage: Usage, since: str, until: str) -> Usage:
    """A copy of what belongs to these days, both included."""
    found: Usage = {}
    merge(found, {slot: sums for slot, sums in usage.items() if since <= slot.day <= until})
    return found
