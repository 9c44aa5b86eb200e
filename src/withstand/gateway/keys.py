"""Who may ask for what. Of a key only its hash is known, so that neither the file nor a dump gives one away."""

import hashlib
from collections.abc import Callable, Mapping

from msgspec import Struct

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


class Keyring:
    """All keys; without any, everybody is served."""

    def __init__(self, keys: Mapping[str, KeyConfig], *, local: bool) -> None:
        self._keys = {bytes.fromhex(told.sha256): _key(owner, told) for owner, told in keys.items()}
        self._anybody = Key(None, admin=local)

    def key_of(self, header: Callable[[bytes], bytes | None]) -> Key | None:
        """By its hash: a lookup takes as long for a near miss as for any other."""
        if not self._keys:
            return self._anybody
        said = header(b"authorization")
        secret = said[7:] if said is not None and said[:7].lower() == b"bearer " else header(b"x-api-key")
        return self._keys.get(hashlib.sha256(secret.strip()).digest()) if secret is not None else None

    def dropped(self, *, engine_has_key: bool) -> frozenset[bytes]:
        """Headers that an engine does not get to see: keys of ours among them, and any in the place of its own."""
        return OURS if self._keys or engine_has_key else HOP_BY_HOP


def _key(owner: str, told: KeyConfig) -> Key:
    return Key(owner, None if told.models is None else frozenset(told.models), told.admin)
