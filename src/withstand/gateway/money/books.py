"""Usage as it is kept: what came lately in memory, the rest in a store, which is written once a second in a thread.

A request only adds to a dict. A store that fails costs no request anything: what it did not take is kept and offered
again under the same number, so that nothing counts twice, not even when only the store's answer was lost.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from typing import ParamSpec, TypeVar

from withstand.errors import StorageError
from withstand.gateway.money.rows import Slot, Spending, Sums, Usage, add, between, merge, periods_of, spending_of
from withstand.gateway.money.stores.store import Batch, Store

P = ParamSpec("P")
T = TypeVar("T")
_LAST_FLUSH_S = 5.0


class Books:
    """``report`` hears a sentence when the store fails, and None when it works again; it is called on the loop."""

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop, report: Callable[[str | None], None]) -> None:
        self._store = store
        self._loop = loop
        self._report = report
        self._thread: Executor = ThreadPoolExecutor(1, "books")
        self._fresh: Usage = {}
        self._batch: Batch | None = None
        """Given to the store, and not known to be taken."""
        self._number = self._taken = 0
        self._busy = False
        self._spent: Spending = {}
        self._unstored: Spending = {}
        """Of ``_fresh`` and ``_batch``."""

    def add(self, slot: Slot, sums: Sums) -> None:
        """One request is settled."""
        add(self._fresh, slot, sums)
        if sums.cost_nusd:
            _add(self._unstored, spending_of({slot: sums}))

    def spent_nusd(self, owner: str, period: str) -> int:
        """By all processes that share the store, as of a second ago, and by this one until now."""
        return self._spent.get((owner, period), 0) + self._unstored.get((owner, period), 0)

    def load(self, day: str) -> None:
        """What was spent before this process began.

        Raises:
            StorageError: the store cannot be read.
        """
        self._spent = self._store.spent(periods_of(day))

    def flush(self, day: str) -> None:
        """Hand over what there is, and hear what others have spent; at once, for it is done elsewhere."""
        if not self._busy:
            self._busy = True
            self._submit(self._round, day).add_done_callback(self._hear_later)

    async def usage(self, since: str, until: str) -> Usage:
        """All sums of these days, to the last request.

        Raises:
            StorageError: the store cannot be read.
        """
        recent = between(self._fresh, since, until)
        batch = self._batch
        stored, taken = await asyncio.wrap_future(self._do(self._read, since, until))
        if batch is not None and batch.number > taken:
            merge(recent, between(batch.usage, since, until))
        merge(stored, recent)
        return stored

    def close(self, day: str) -> None:
        """Write the rest; a store that hangs is not waited for long."""
        try:
            for _ in range(2):  # what is under way, and what came since
                self._hear(self._submit(self._round, day).result(_LAST_FLUSH_S))
        except Late:
            self._report("The state does not answer; what it was not told of the last requests is lost.")
            self._thread.shutdown(wait=False, cancel_futures=True)
        else:
            self._thread.shutdown()
            self._store.close()

    def _submit(self, work: Callable[[Batch | None, str], "_Heard"], day: str) -> "Future[_Heard]":
        if self._batch is None and self._fresh:
            self._number += 1
            self._batch, self._fresh = Batch(self._number, self._fresh), {}
        return self._do(work, self._batch, day)

    def _do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        try:
            return self._thread.submit(work, *args, **kwargs)
        except RuntimeError:  # a limit allows no more threads
            self._thread = _Here()
            return self._thread.submit(work, *args, **kwargs)

    def _round(self, batch: Batch | None, day: str) -> "_Heard":
        """In the thread."""
        try:
            if batch is not None:
                self._store.add(batch)
                self._taken = batch.number
        except StorageError as e:
            return _Heard(None, None, str(e))
        try:
            return _Heard(batch, self._store.spent(periods_of(day)), None)
        except StorageError as e:
            return _Heard(batch, None, str(e))

    def _read(self, since: str, until: str) -> tuple[Usage, int]:
        """In the thread: what is stored, and the last batch that is part of it."""
        return self._store.usage(since, until), self._taken

    def _hear_later(self, done: "Future[_Heard]") -> None:
        if not (done.cancelled() or self._loop.is_closed()):
            fault = done.exception()  # one that no store expects must not stop the rounds
            heard = done.result() if fault is None else _Heard(None, None, f"The state cannot be used: {fault!r}.")
            self._loop.call_soon_threadsafe(self._hear, heard)

    def _hear(self, heard: "_Heard") -> None:
        """On the loop."""
        self._busy = False
        if heard.taken is not None and heard.taken is self._batch:
            self._batch = None
            taken = spending_of(heard.taken.usage)
            _add(self._spent, taken)
            _add(self._unstored, taken, -1)
        if heard.spent is not None:
            self._spent = heard.spent
        self._report(heard.trouble)


class _Here(Executor):
    """No thread at all: the loop waits for what is done."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        done: Future[T] = Future()
        try:
            done.set_result(work(*args, **kwargs))
        except Exception as e:  # noqa: BLE001  as where there is a thread
            done.set_exception(e)
        return done


class _Heard:
    """What came of a round."""

    __slots__ = ("spent", "taken", "trouble")

    def __init__(self, taken: Batch | None, spent: Spending | None, trouble: str | None) -> None:
        self.taken = taken
        self.spent = spent
        self.trouble = trouble


def _add(spending: Spending, more: Spending, sign: int = 1) -> None:
    for key, nusd in more.items():
        total = spending.get(key, 0) + sign * nusd
        if total:
            spending[key] = total
        else:
            spending.pop(key, None)
