"""A process whose memory lies on pages of 2 MiB: ``python -m withstand.huge_pages MODULE ARGUMENT…`` runs one.

The arenas of Python's allocator, the heap of the C library, and the interpreter's own code. Where the kernel has no
huge pages, or there is no compiled module, the program runs as ever; so it does with ``WITHSTAND_HUGE_PAGES=off``.
"""

import os
import resource
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from withstand.compiled import compiled

PAGE = 2 << 20
_ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
_STRICTLY = "2"
_ADDRESSES = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
_MAPS = Path("/proc/self/maps")
_pages = compiled("withstand._huge_pages", __file__)


class Mapping(NamedTuple):
    """A line of ``/proc/PID/maps``: addresses, what may be done there, and of which file; "" = of none."""

    begin: int
    end: int
    rights: str
    file: str


def ask() -> None:
    """Huge pages from here on; the earlier, the more of the process lies on them."""
    if not are_to_be_had():
        return
    _pages.take_arenas()
    is_grown = _pages.grow_heap()
    mappings = _own_mappings()
    for mapping in mappings:
        if is_grown and mapping.file == "[heap]":
            _pages.take_heap(mapping.begin, mapping.end)
    for begin, end in pages_of_code(mappings, _pages.interpreter()):
        _pages.copy_code(begin, end)
    settle()


def settle() -> None:
    """What the process has by now, also after a fork, which takes huge pages to pieces."""
    if _pages is not None:
        _pages.settle()


def pages_of_code(mappings: Sequence[Mapping], address: int) -> list[tuple[int, int]]:
    """Ranges of whole huge pages that nobody writes, of the file whose code is at ``address``, with code in each."""
    file = next((m.file for m in mappings if m.begin <= address < m.end), "")
    fixed = [m for m in mappings if m.file == file and file.startswith("/") and "r" in m.rights and "w" not in m.rights]
    pages = {at for m in fixed if "x" in m.rights for at in range(m.begin // PAGE * PAGE, m.end, PAGE)}
    return [(at, at + PAGE) for at in sorted(pages) if sum(_within(m, at, at + PAGE) for m in fixed) == PAGE]


def _within(mapping: Mapping, begin: int, end: int) -> int:
    """Bytes of it that lie there."""
    return max(0, min(mapping.end, end) - max(mapping.begin, begin))


def are_to_be_had() -> bool:
    """Whether a program that asks for them gets them: not where addresses that are only set aside count as memory."""
    if _pages is None or os.environ.get("WITHSTAND_HUGE_PAGES") == "off":
        return False
    if any(resource.getrlimit(kind)[0] != resource.RLIM_INFINITY for kind in _ADDRESSES):
        return False
    try:
        return "[never]" not in _ENABLED.read_text("ascii") and _OVERCOMMIT.read_text("ascii").strip() != _STRICTLY
    except OSError:
        return False


def _own_mappings() -> list[Mapping]:
    found: list[Mapping] = []
    try:
        told = _MAPS.read_text("utf-8", "surrogateescape")
    except OSError:
        return found
    for line in told.rstrip("\n").split("\n"):
        addresses, rights, _, _, _, *file = line.split(maxsplit=5)
        begin, end = (int(address, 16) for address in addresses.split("-"))
        found.append(Mapping(begin, end, rights, "".join(file)))
    return found


def main() -> None:
    """Run the module that the command line names, with the arguments that follow."""
    ask()
    del sys.argv[0]
    if not sys.argv:
        sys.exit("withstand: Name a module: python -m withstand.huge_pages MODULE ARGUMENT…")
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
