"""What datasets out of a file share: rows in a seeded order, a count of what was left out and why."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Generic, TypeVar

from withstand.workload.dataset import Session

RowT = TypeVar("RowT")
_BATCH = 16


class FromFile(Generic[RowT]):
    """Finite. ``convert`` turns a batch of rows into sessions, or reasons why a row is left out."""

    def __init__(
        self,
        name: str,
        rows: Sequence[RowT],
        convert: Callable[[Sequence[RowT]], Sequence[Session | str]],
        *,
        seed: str | None = None,
        timed: bool = False,
        judged: Counter[str] | None = None,
    ) -> None:
        """``seed`` None = in the order given.

        ``judged``: what has been left out of ``rows`` already, by reason; None = each row is judged when it is drawn.
        """
        self.name = name
        self.timed = timed
        self.most: int | None = len(rows)
        self.certain = judged is not None
        self._rows = rows
        self._convert = convert
        self._seed = seed
        self._never = judged or Counter[str]()
        self._left_out = self._never.copy()

    def sessions(self) -> Iterator[Session]:
        """Converted as they are drawn, in batches that begin small: the first session comes soon."""
        self._left_out = self._never.copy()
        order = list(range(len(self._rows)))
        if self._seed is not None:
            Random(f"{self._seed}/order").shuffle(order)
        start, size = 0, 1
        while batch := order[start : start + size]:
            yield from self._kept(self._convert([self._rows[i] for i in batch]))
            start, size = start + size, min(2 * size, _BATCH)

    def _kept(self, found: Sequence[Session | str]) -> Iterator[Session]:
        for session in found:
            if isinstance(session, Session):
                yield session
            else:
                self._left_out[session] += 1

    def shortage(self) -> str:
        """``; of 100 rows, 12 were left out (7 empty, 5 too long)``."""
        if not self._left_out:
            return ""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self._left_out.most_common())
        rows = len(self._rows) + self._never.total()
        return f"; of {rows:,} rows, {self._left_out.total():,} were left out ({reasons})"
