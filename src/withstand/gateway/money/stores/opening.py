"""Which store a ``state`` means: the scheme of a URL says it, and a path is SQLite's."""

import os
import uuid
from urllib.parse import urlsplit

from withstand.errors import UsageError, extra
from withstand.gateway.money.stores.store import MemoryStore, Store

_SERVERS = {"redis": "redis", "rediss": "redis", "postgresql": "postgres", "postgres": "postgres"}


def open_store(state: str | None, state_env: str | None) -> Store:
    """The store, which works.

    Raises:
        UsageError: it is not known, or its extra is not installed.
        StorageError: it cannot be used.
    """
    told = told_state(state, state_env)
    writer = f"{os.getpid()}-{uuid.uuid4().hex}"
    if told is None:
        return MemoryStore()
    kind = kind_of(told)
    if kind is None:
        from withstand.gateway.money.stores.sqlite import SqliteStore  # noqa: PLC0415  only the store in use

        return SqliteStore(told, writer)
    try:
        return _opened(kind, told, writer)
    except ModuleNotFoundError as e:
        raise UsageError(f"This state needs {e.name}: {extra(f'gateway-{kind}')}.") from None
    except ValueError as e:
        raise UsageError(f"The state's URL is wrong: {e}.") from None


def told_state(state: str | None, state_env: str | None) -> str | None:
    """The state as it is meant.

    Raises:
        UsageError: the environment names none where it should.
    """
    return _from_env(state_env) if state_env is not None else state


def _opened(kind: str, url: str, writer: str) -> Store:
    if kind == "redis":
        from withstand.gateway.money.stores.redis import RedisStore  # noqa: PLC0415  an extra

        return RedisStore(url, _public(url), writer)
    from withstand.gateway.money.stores.postgres import PostgresStore  # noqa: PLC0415  an extra

    return PostgresStore(url, _public(url), writer)


def kind_of(state: str) -> str | None:
    """The extra that it needs; None = SQLite.

    Raises:
        UsageError: a URL of a kind that is not known.
    """
    scheme, found, _ = state.partition("://")
    if not found:
        return None
    if scheme not in _SERVERS:
        raise UsageError(f"{scheme}:// is not known; name a file, redis://HOST or postgresql://HOST/DATABASE.")
    return _SERVERS[scheme]


def holds_password(state: str) -> bool:
    """Whether the text gives a secret away."""
    try:
        parts = urlsplit(state)
    except ValueError:
        return False
    return bool(parts.password) or "password=" in parts.query


def _public(url: str) -> str:
    """Without who asks, and their password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _from_env(name: str) -> str:
    told = os.environ.get(name, "").strip()
    if not told:
        raise UsageError(f"The environment variable {name} names no state; put a file or a URL there.")
    return told
