"""Who may ask for what. Of a key only its hash is known, so that neither the file nor a dump gives one away."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping

from msgspec import Struct

from withstand.errors import UsageError
from withstand.gateway.config import KeyConfig
from withstand.gateway.heads import HOP_BY_HOP, OURS


class Key(Struct, frozen=True):
    """Its owner, and what they may do; ``models`` None = all."""

    owner: str | None
    models: frozenset[str] | None = None
    admin: bool = False

    def may_use(self, model: str) -> bool:
        """Whether this key's owner may know that there is such a model."""
        return self.models is None or model in self.models


class Shown:
    """The key that a connection's last request has shown, for the next one's is nearly always the same."""

    __slots__ = ("header", "key", "keyring", "secret")

    def __init__(self) -> None:
        self.header: Callable[[bytes], bytes | None] | None = None
        """Of the request that showed it."""
        self.keyring: Keyring | None = None
        """What it was looked up in."""
        self.secret = b""
        self.key: Key | None = None


class Keyring:
    """All keys; without any, everybody is served.

    Raises:
        UsageError: the environment holds no hash where it should.
    """

    def __init__(self, keys: Mapping[str, KeyConfig], *, local: bool) -> None:
        self._keys: dict[bytes, Key] = {}
        for owner, told in keys.items():
            first = self._keys.setdefault(_digest(owner, told), key := _key(owner, told))
            if first is not key:
                raise UsageError(f"{first.owner!r} and {owner!r} have the same key; make one for each.")
        self._anybody = Key(None, admin=local)
        self.dropped = OURS if self._keys else HOP_BY_HOP
        """Headers that an engine does not get to see; one that has a key of its own sees no other (``OURS``)."""

    def key_of(self, header: Callable[[bytes], bytes | None], before: "Shown | None" = None) -> Key | None:
        """By its hash, unless the connection has shown the same ``before``.

        How long the lookup takes says nothing of a key: what is compared are hashes, and whoever tries keys cannot
        steer theirs to come near another's.
        """
        if not self._keys:
            return self._anybody
        if before is not None and before.header is header and before.keyring is self:
            return before.key
        said = header(b"authorization")
        if said is not None and said[:7].lower() == b"bearer ":
            secret: bytes | None = said[7:]
        else:
            secret = header(b"x-api-key") or header(b"api-key")
        if secret is None:
            return None
        if before is None:
            return self._keys.get(hashlib.sha256(secret.strip()).digest())
        before.header = header
        if before.keyring is not self or before.secret != secret:
            before.keyring, before.secret = self, secret
            before.key = self._keys.get(hashlib.sha256(secret.strip()).digest())
        return before.key


def _key(owner: str, told: KeyConfig) -> Key:
    return Key(owner, None if told.models is None else frozenset(told.models), told.admin)


def _digest(owner: str, told: KeyConfig) -> bytes:
    text = told.sha256
    if told.sha256_env is not None:
        text = os.environ.get(told.sha256_env, "").strip()
        if not re.fullmatch("[0-9a-fA-F]{64}", text):
            raise UsageError(
                f"The environment variable {told.sha256_env} holds no SHA-256 of the key of {owner!r}; "
                "`withstand gateway keys hash` makes one."
            )
    assert text is not None, "one of the two is given"
    return bytes.fromhex(text)
