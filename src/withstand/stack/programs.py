"""Programs of others that a stack is made of: where they are on this machine."""

import os
import shutil
from collections.abc import Iterable, Mapping

from withstand.errors import EngineError

_BESIDES = ("/usr/local/sbin", "/usr/sbin", "/opt/homebrew/bin")
"""Where servers are installed, and which is not on everybody's path."""


def found_programs(wanted: Mapping[str, Iterable[str]], welcome: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Name → path, of each the first spelling that is there; those that are only welcome may be missing.

    Raises:
        EngineError: one is not installed.
    """
    found = {name: found_program(*spellings) for name, spellings in wanted.items()}
    for name, path in found.items():
        if path is None:
            tried = ", ".join(wanted[name])
            raise EngineError(f"{name} is not installed here (looked for {tried}); install it, or name its program.")
    found |= {name: found_program(*spellings) for name, spellings in welcome.items()}
    return {name: path for name, path in found.items() if path}


def found_program(*spellings: str) -> str | None:
    """The first that is there; None = none is."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *_BESIDES])
    return next((found for name in spellings if (found := shutil.which(name, path=path))), None)
