"""What any store can do. All of it may block, and is called in one thread."""

from typing import Protocol

from msgspec import Struct

from withstand.gateway.money.rows import Spending, Usage, between, merge, spending_of


class Batch(Struct, frozen=True):
    """Sums to be added. A writer's numbers rise; one that is not above the last is known already, and is not added."""

    number: int
    usage: Usage


class Store(Protocol):
    """Shared by any number of processes; each method fails with a StorageError, after which it may be tried again."""

    def add(self, batch: Batch) -> None:
        """All of it or nothing."""

    def spent(self, periods: tuple[str, str, str]) -> Spending:
        """By every key, in these periods."""

    def usage(self, since: str, until: str) -> Usage:
        """The sums of these days, both included."""

    def close(self) -> None:
        """It is not needed any more."""


class MemoryStore:
    """For a gateway without a state: sums since its start."""

    def __init__(self) -> None:
        self._usage: Usage = {}
        self._spent: Spending = {}

    def add(self, batch: Batch) -> None:
        """As a store does."""
        merge(self._usage, batch.usage)
        for key, nusd in spending_of(batch.usage).items():
            self._spent[key] = self._spent.get(key, 0) + nusd

    def spent(self, periods: tuple[str, str, str]) -> Spending:
        """As a store does."""
        return {key: nusd for key, nusd in self._spent.items() if key[1] in periods}

    def usage(self, since: str, until: str) -> Usage:
        """As a store does."""
        return between(self._usage, since, until)

    def close(self) -> None:
        """Nothing to do."""
