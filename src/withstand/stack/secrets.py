"""Secrets are read where they are used, at the last moment, and written nowhere."""

import os
from collections.abc import Mapping
from pathlib import Path

from withstand.errors import UsageError
from withstand.spec.stack import Secret


def environment(told: Mapping[str, str | Secret]) -> dict[str, str]:
    """With the secrets in it.

    Raises:
        UsageError: one is not where it should be.
    """
    return {name: value if isinstance(value, str) else secret(value) for name, value in told.items()}


def secret(told: Secret) -> str:
    """What it is."""
    if told.from_env is not None:
        found = os.environ.get(told.from_env, "").strip()
        where = f"The variable {told.from_env}"
    else:
        assert told.from_file is not None
        where = f"The file {told.from_file}"
        try:
            found = Path(told.from_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            found = ""
    if not found:
        raise UsageError(f"{where} holds no secret; put it there.")
    return found
