"""What datasets out of a file share: rows in a seeded order, a count of what was left out and why."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Generic, TypeVar

from withstand.workload.dataset import Session

RowT = TypeVar("RowT")
_BATCH = 64


class FromFile(Generic[RowT]):
    """Finite. ``convert`` turns a batch of rows into sessions, or a reason why a row is left out."""

    finite = True

    def __init__(
        self,
        name: str,
        rows: Sequence[RowT],
        convert: Callable[[Sequence[RowT]], list[Session | str]],
        *,
        seed: str | None,
        timed: bool = False,
    ) -> None:
        """``seed`` None = in the order of the file."""
        self.name = name
        self.timed = timed
        self._rows = rows
        self._convert = convert
        self._seed = seed
        self._left_out: Counter[str] = Counter()

    def sessions(self) -> Iterator[Session]:
        """Converted as they are drawn, a batch at a time."""
        self._left_out.clear()
        order = list(range(len(self._rows)))
        if self._seed is not None:
            Random(f"{self._seed}/order").shuffle(order)
        for start in range(0, len(order), _BATCH):
            for found in self._convert([self._rows[i] for i in order[start : start + _BATCH]]):
                if isinstance(found, Session):
                    yield found
                else:
                    self._left_out[found] += 1

    def shortage(self) -> str:
        """``; of 100 rows, 12 were left out (7 empty, 5 too long)``."""
        if not self._left_out:
            return ""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self._left_out.most_common())
        return f"; of {len(self._rows):,} rows, {self._left_out.total():,} were left out ({reasons})"
