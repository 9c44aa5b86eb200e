"""Where nginx passes requests on, and what holds there: directives are inherited from the blocks around."""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from withstand.doctor.nginx_syntax import Directive

_ARRAYS = frozenset({"proxy_set_header", "add_header"})
"""Of these a block has all of its own, or all of the one around it."""
_NO_HTTP = frozenset({"upstream", "stream", "mail"})
_PASS = "proxy_pass"  # noqa: S105  no password
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0, "M": 2592000.0, "y": 31536000.0}
_SIZES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


Block = Mapping[str, tuple[Directive, ...]]
"""A block's directives by their names."""


class Place(Struct, frozen=True):
    """A block with a ``proxy_pass``, and the blocks around it, the outermost first."""

    blocks: tuple[Block, ...]
    name: str
    passes: Directive
    upstream: Directive | None
    """The block that it names; None = an address."""

    def of(self, name: str) -> tuple[Directive, ...]:
        """The directives of a name that hold here."""
        for block in reversed(self.blocks):
            if found := block.get(name):
                return found if name in _ARRAYS else found[-1:]
        return ()

    def word(self, name: str, default: str) -> str:
        """The first argument that holds here."""
        found = self.of(name)
        return found[0].args[0] if found and found[0].args else default

    def words(self, name: str) -> tuple[str, ...]:
        """All arguments that hold here."""
        found = self.of(name)
        return found[0].args if found else ()

    def header(self, name: str) -> str | None:
        """What is sent on under a header's name; None = nothing is said of it."""
        for each in self.of("proxy_set_header"):
            if len(each.args) == 2 and each.args[0].lower() == name:
                return each.args[1]
        return None

    def where(self, name: str) -> str:
        """The line to change: of the directive, or of the ``proxy_pass`` where there is none."""
        found = self.of(name)
        return (found[0] if found else self.passes).where

    def at(self, name: str) -> str:
        """``location / (site.conf:12)``."""
        return f"{self.name} ({self.where(name)})"

    def seconds(self, name: str, default: float) -> float | None:
        """A time; None where it is no constant."""
        text = " ".join(self.words(name))
        return seconds_of(text) if text else default

    def bytes(self, name: str, default: float) -> float | None:
        """A size; None where it is no constant."""
        text = self.word(name, "")
        match = re.fullmatch(r"(\d+)([kmgKMG]?)", text)
        return int(match[1]) * _SIZES[match[2].lower()] if match else (None if text else default)


def seconds_of(text: str) -> float | None:
    """``1h 30m``, ``90``, ``500ms``."""
    parts = re.findall(r"(\d+)(ms|[smhdwMy]?)\s*", text)
    whole = "".join(f"{number}{unit}" for number, unit in parts)
    return sum(int(n) * _UNITS_S[unit or "s"] for n, unit in parts) if whole == text.replace(" ", "") else None


def places_of(directives: tuple[Directive, ...]) -> list[Place]:
    """All of a file."""
    upstreams = {each.args[0]: each for each in _all(directives) if each.name == "upstream" and each.args}
    return list(_places(directives, (), (), upstreams))


def _all(directives: tuple[Directive, ...]) -> Iterator[Directive]:
    for each in directives:
        yield each
        yield from _all(each.block or ())


def _by_name(block: tuple[Directive, ...]) -> Block:
    found: dict[str, list[Directive]] = {}
    for each in block:
        found.setdefault(each.name, []).append(each)
    return {name: tuple(several) for name, several in found.items()}


def _places(
    block: tuple[Directive, ...],
    around: tuple[Block, ...],
    path: tuple[str, ...],
    upstreams: Mapping[str, Directive],
) -> Iterator[Place]:
    blocks = (*around, _by_name(block))
    for each in block:
        if each.name == _PASS and each.args:
            target = re.sub(r"^https?://", "", each.args[0]).partition("/")[0]
            yield Place(blocks, " ".join(path) or _PASS, each, upstreams.get(target))
        elif each.block is not None and each.name not in _NO_HTTP:
            named = (" ".join((each.name, *each.args)),) if each.name == "location" else ()
            yield from _places(each.block, blocks, (*path, *named), upstreams)
