"""HTML as nested calls. Text is escaped unless it is already ``Markup``: what came from outside cannot become a tag.

Control characters, which HTML forbids and a terminal obeys, are shown as unreadable.
"""

import re
from html import escape

NO_BREAK = "\u00a0"
_UNIT = re.compile(r"(?<=\d) (?=(?:%|ms|s|tok/s|req/s|requests?|tokens?)(?!\w))")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_VOID = frozenset({"br", "col", "meta"})


class Markup(str):
    """HTML that is already right."""

    __slots__ = ()


def tag(name: str, *children: str, **attributes: str | bool) -> Markup:
    """An element. ``class_`` is class, ``aria_label`` is aria-label; True stands alone, False is left out."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    opened = f"<{name}{said}>"
    return Markup(opened if name in _VOID else f"{opened}{joined(*children)}</{name}>")


def joined(*children: str) -> Markup:
    """One after another, without anything between."""
    return Markup("".join(child if isinstance(child, Markup) else _escaped(child) for child in children))


def typed(text: str) -> Markup:
    """A sentence of ours: what stands between backticks is typed."""
    parts = unbroken(text).split("`")
    if len(parts) % 2 == 0:
        return joined(unbroken(text))
    return joined(*(tag("code", part) if i % 2 else part for i, part in enumerate(parts)))


def unbroken(text: str) -> str:
    """With a no-break space between each number and its unit."""
    return _UNIT.sub(NO_BREAK, text)


def _attribute(key: str, value: str | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if isinstance(value, bool):
        return f" {name}" if value else ""
    return f' {name}="{_escaped(value)}"'


def _escaped(text: str) -> str:
    return escape(_CONTROL.sub("\ufffd", text))
