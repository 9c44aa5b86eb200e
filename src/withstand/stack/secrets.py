"""Secrets are read where they are used, at the last moment, and written nowhere."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from withstand.errors import UsageError
from withstand.spec.stack import Secret

_BYTES_MAX = 64 << 10


def environment(told: Mapping[str, str | Secret], service: str = "") -> dict[str, str]:
    """With the secrets in it.

    Raises:
        UsageError: one is not where it should be, or none that a variable can hold; the text names that.
    """
    at = f"{service}: env" if service else "env"
    return {name: value if isinstance(value, str) else secret(value, f"{at}.{name}") for name, value in told.items()}


def secret(told: Secret, at: str) -> str:
    """What it is; ``at`` is the field that tells of it."""
    if told.from_env is not None:
        found, where = os.environ.get(told.from_env, ""), f"the variable {told.from_env}"
    else:
        assert told.from_file is not None
        where = f"the file {told.from_file}"
        try:
            found = _text(Path(told.from_file))
        except FileNotFoundError:
            raise UsageError(f"{at}: {where} is not there; put the secret into it.") from None
        except OSError as e:
            raise UsageError(f"{at}: {where} cannot be read: {e.strerror}.") from None
        except ValueError as e:
            raise UsageError(f"{at}: {where} {e}; name one that holds the secret alone, as text.") from None
    if not found.strip():
        raise UsageError(f"{at}: {where} holds no secret; put it there.")
    return found.strip()


def _text(path: Path) -> str:
    """Of a file that can be one: a pipe is not waited for.

    Raises:
        OSError: it cannot be read.
        ValueError: it is none; the text is a clause.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("is no regular file")
    with path.open("rb") as file:
        found = file.read(_BYTES_MAX + 1)
    if len(found) > _BYTES_MAX:
        raise ValueError(f"is larger than {_BYTES_MAX >> 10} KiB")
    if b"\0" in found:
        raise ValueError("holds a NUL, which no variable can")
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
