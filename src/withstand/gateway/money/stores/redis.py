"""Redis (or Valkey): for gateways on several machines. A batch is one script, which Redis runs as a whole.

Sums are fields of one hash a day, ``withstand:usage:DAY``; spending is one hash a period, ``withstand:spent:PERIOD``.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
import redis

from withstand.errors import StorageError
from withstand.gateway.money.rows import SUM_NAMES, Slot, Spending, Sums, Usage, spending_of
from withstand.gateway.money.stores.store import Batch

_PATIENCE_S = 3.0
_WRITER_KEPT_S = 7 * 86400
_ADD = """
if tonumber(redis.call('GET', KEYS[1]) or '0') >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
for i = 3, #ARGV, 3 do redis.call('HINCRBY', ARGV[i], ARGV[i + 1], ARGV[i + 2]) end
return 1
"""


class RedisStore:
    """``url`` may hold a password, and is in no message; ``name`` is what people see.

    Raises:
        StorageError: the server cannot be used.
    """

    def __init__(self, url: str, name: str, writer: str) -> None:
        self._name = name
        self._writer = f"withstand:writer:{writer}"
        with self._told():
            self._db = redis.Redis.from_url(
                url, socket_timeout=_PATIENCE_S, socket_connect_timeout=_PATIENCE_S, decode_responses=True
            )
            self._db.ping()
            self._add = self._db.register_script(_ADD)

    def add(self, batch: Batch) -> None:
        """All of it or nothing."""
        told: list[Any] = [batch.number, _WRITER_KEPT_S]
        for slot, sums in batch.usage.items():
            for name in SUM_NAMES:
                if amount := getattr(sums, name):
                    told += [f"withstand:usage:{slot.day}", _field(slot.owner, slot.model, name), amount]
        for (owner, period), nusd in spending_of(batch.usage).items():
            if nusd:
                told += [f"withstand:spent:{period}", owner, nusd]
        with self._told():
            self._add(keys=[self._writer], args=told)

    def spent(self, periods: tuple[str, str, str]) -> Spending:
        """By every key, in these periods."""
        spent: Spending = {}
        with self._told():
            for period in periods:
                hashed: Mapping[Any, Any] = self._db.hgetall(f"withstand:spent:{period}")
                spent.update({(owner, period): int(nusd) for owner, nusd in hashed.items()})
        return spent

    def usage(self, since: str, until: str) -> Usage:
        """The sums of these days."""
        found: Usage = {}
        with self._told():
            for key in self._db.scan_iter("withstand:usage:*", count=1000):
                day = key.rpartition(":")[2]
                if since <= day <= until:
                    _gather(found, day, self._db.hgetall(key))
        return found

    def close(self) -> None:
        """End the connections."""
        self._db.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (redis.RedisError, ValueError) as e:
            raise StorageError(f"The state {self._name} cannot be used: {e}; start it, or name another.") from None


def _field(owner: str, model: str, name: str) -> str:
    """JSON, for names may hold any character."""
    return msgspec.json.encode([owner, model, name]).decode("utf-8")


def _gather(found: Usage, day: str, hashed: Mapping[Any, Any]) -> None:
    for field, amount in hashed.items():
        owner, model, name = msgspec.json.decode(field)
        setattr(found.setdefault(Slot(owner, model, day), Sums()), name, int(amount))
