"""The gateway's own key at an engine, which stands in the environment or in a file of its own."""

import os
from pathlib import Path

from withstand.errors import SpecError
from withstand.gateway.config import EngineConfig


def credentials_of(told: EngineConfig, where: str) -> bytes | None:
    """None = it has none; ``where`` is the engine's place in the configuration.

    Raises:
        SpecError: it cannot be had; the text names the place.
    """
    if told.api_key_env is not None:
        key = os.environ.get(told.api_key_env, "")
        return _clean(key, f"the environment variable {told.api_key_env}", f"{where}.api_key_env")
    if told.api_key_file is not None:
        field = f"{where}.api_key_file"
        try:
            key = Path(told.api_key_file).read_text("utf-8-sig")
        except OSError as e:
            raise _wrong(f"the file {told.api_key_file} cannot be read: {e.strerror}", field) from None
        except UnicodeDecodeError:
            key = ""
        return _clean(key, f"the file {told.api_key_file}", field)
    return None


def _clean(text: str, what: str, field: str) -> bytes:
    key = text.strip()
    if not key or not (key.isascii() and key.isprintable()):
        raise _wrong(f"{what} holds no API key for an engine; put one there", field)
    return key.encode("ascii")


def _wrong(what: str, field: str) -> SpecError:
    return SpecError(f"The configuration is wrong: {what} - at `$.{field}`.")
