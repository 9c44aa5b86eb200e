"""The KV cache: blocks that are held, kept for whoever has the same prefix, or empty. The law: never more than all.

A block that nobody holds keeps what it has until its place is needed; the one that was left the longest ago goes first.
"""

from collections import OrderedDict
from collections.abc import Hashable, Sequence


class Blocks:
    """``count`` of them. Holders get numbers; a full block of a prompt is known by the hash of all tokens up to it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._empty = count
        self._holders: dict[Hashable, int] = {}
        """Of blocks that are known by a hash and held, by how many."""
        self._kept: OrderedDict[Hashable, None] = OrderedDict()
        self._nameless = 0

    @property
    def used(self) -> int:
        """Held by somebody."""
        return len(self._holders) + self._nameless

    @property
    def available(self) -> int:
        """That somebody could have."""
        return self._empty + len(self._kept)

    def found(self, hashes: Sequence[Hashable]) -> int:
        """How many of a prompt's first blocks are there."""
        count = 0
        for each in hashes:
            if each not in self._holders and each not in self._kept:
                break
            count += 1
        return count

    def resting(self, hashes: Sequence[Hashable]) -> int:
        """How many of them nobody holds: to hold them takes them from what is available."""
        return sum(each in self._kept for each in hashes)

    def hold(self, hashes: Sequence[Hashable]) -> None:
        """Blocks that were found."""
        for each in hashes:
            self._kept.pop(each, None)
            self._holders[each] = self._holders.get(each, 0) + 1

    def take(self, count: int) -> None:
        """So many nameless ones; there must be as many."""
        assert count <= self.available
        for _ in range(max(0, count - self._empty)):
            self._kept.popitem(last=False)
            self._empty += 1
        self._empty -= count
        self._nameless += count

    def name(self, each: Hashable) -> bool:
        """A nameless block of the caller's is full; False = another has the same already, so it stays nameless."""
        if each in self._holders or each in self._kept:
            return False
        self._nameless -= 1
        self._holders[each] = 1
        return True

    def give_back(self, named: Sequence[Hashable], nameless: int) -> None:
        """What somebody held. The end of a prefix is forgotten before its beginning."""
        self._nameless -= nameless
        self._empty += nameless
        for each in reversed(named):
            self._holders[each] -= 1
            if not self._holders[each]:
                del self._holders[each]
                self._kept[each] = None
