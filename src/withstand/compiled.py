"""What was compiled when withstand was installed: whether there is any of it, and of the source that is here.

Modules in C, each of which stands in for Python beside it. And modules of a package that mypyc has made of their own
source: they lie in a folder of it, with a list of what they were made of.
"""

import os
from hashlib import sha256
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
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


FOLDER = "_compiled"


def list_of_sources(package: Path) -> Path:
    """The file that names each module of a package that was compiled for this interpreter, with its digest."""
    return package / FOLDER / f"sources{EXTENSION_SUFFIXES[0].removesuffix('.so')}"


def folder_of_compiled(beside: str) -> str | None:
    """Where the compiled modules of the package are, to be looked at first; None where a source has changed since.

    ``beside`` is a file of the package. ``WITHSTAND_COMPILED=off`` in the environment: there are none.
    """
    package = Path(beside).parent
    try:
        listed = list_of_sources(package).read_text("ascii")
    except OSError:
        return None
    if os.environ.get("WITHSTAND_COMPILED") == "off" or listed != sources(package, names_in(listed)):
        return None
    return str(package / FOLDER)


def names_in(listed: str) -> list[str]:
    """Modules that a list of sources names."""
    return [line.partition(" ")[0] for line in listed.splitlines()]


def sources(package: Path, names: list[str]) -> str:
    """The list of these modules' sources, as they are now; nothing for one that is not there."""
    files = [(name, package / f"{name}.py") for name in names]
    return "".join(f"{name} {digest(file)}\n" for name, file in files if file.exists())
