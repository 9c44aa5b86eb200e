"""What was meant by a name that is not known: said beside what msgspec says of a tree that does not fit its type."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from msgspec import inspect

_WRONG = re.compile(r"(?:unknown field `(?P<field>[^`]*)`|(?:enum )?value '(?P<value>[^']*)')")
_AT = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[[^\]]*\]")
_LISTED_MAX = 12


def hinted(told: str, kind: Any) -> str:
    """The message of a ``ValidationError`` against ``kind``, with what is close to the wrong name, else what there is.

    ``Object contains unknown field `num_prompt` (did you mean num_prompts?) - at `$.stages[0]```.
    """
    wrong = _WRONG.search(told)
    if wrong is None:
        return told
    at = _AT.search(told)
    path = at["path"] if at else ""
    name, known = wrong["field"], _fields
    if name is None:
        name, known = wrong["value"], _choices
    return told[: wrong.end()] + meant(name, known(path, kind)) + told[wrong.end() :]


def meant(name: str, known: Iterable[str]) -> str:
    """`` (did you mean x?)``, `` (there are: x, y)``, or nothing where nothing can be said in few words."""
    names = list(dict.fromkeys(known))
    if near := get_close_matches(name, names):
        return f" (did you mean {' or '.join(near)}?)"
    return f" (there are: {', '.join(names)})" if 0 < len(names) <= _LISTED_MAX else ""


def _fields(path: str, kind: Any) -> list[str]:
    return [field.encode_name for one in _at(path, kind) if isinstance(one, inspect.StructType) for field in one.fields]


def _choices(path: str, kind: Any) -> list[str]:
    """Of a value; a struct's tag stands among its fields."""
    parent, _, last = path.rpartition(".")
    tags = [one.tag for one in _at(parent, kind) if isinstance(one, inspect.StructType) and one.tag_field == last]
    values = [value for one in _at(path, kind) for value in _values(one)]
    return [str(value) for value in (*tags, *values)]


def _values(one: inspect.Type) -> list[Any]:
    if isinstance(one, inspect.EnumType):
        return [member.value for member in one.cls]
    return list(one.values) if isinstance(one, inspect.LiteralType) else []


def _at(path: str, kind: Any) -> list[inspect.Type]:
    """All types that may stand there."""
    found = [*_any(inspect.type_info(kind))]
    for step in _STEP.finditer(path):
        found = [within for one in found for below in _below(one, step[1]) for within in _any(below)]
    return found


def _any(one: inspect.Type) -> Iterator[inspect.Type]:
    """Those of a union."""
    if isinstance(one, inspect.UnionType):
        for each in one.types:
            yield from _any(each)
    else:
        yield one.type if isinstance(one, inspect.Metadata) else one


def _below(one: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    if isinstance(one, inspect.StructType):
        yield from (field.type for field in one.fields if field.encode_name == name)
    elif isinstance(one, inspect.DictType):
        yield one.value_type
    elif isinstance(one, inspect.ListType | inspect.VarTupleType) and name is None:
        yield one.item_type
