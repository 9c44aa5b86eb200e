"""Modules in C, each of which stands in for Python beside it: whether there is one, and of the source that is here."""

from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def digest(source: Path) -> str:
    """Of the text of a module, as it is built into it."""
    return sha256(source.read_bytes()).hexdigest()


def compiled(name: str, beside: str) -> Any:
    """The module of that name (``withstand.load._receive``) whose source lies ``beside`` a file; else None.

    There was no compiler when withstand was installed, or no Linux; or the source has changed since.
    """
    try:
        module: ModuleType = import_module(name)
    except ImportError:
        return None
    source = Path(beside).with_name(f"{name.rpartition('.')[2]}.c")
    return module if getattr(module, "SOURCE", "") == digest(source) else None
