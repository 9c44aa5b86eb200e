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
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]+)`(?P<limit> (?:>=|<=|>|<) \S+)?(?:, got `(?P<got>\w+)`)?")
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "array": "a list",
    "object": "a table of keys",
    "null": "nothing",
}
_SUCH_AS = {"int": ", such as 8", "float": ", such as 500"}
_LIMITS = {">": "above", ">=": "of at least", "<": "below", "<=": "of at most"}
_HOST = r"(?:[\w.-]+|\[[\da-f:.]+\])"
_URL = re.compile(rf"(?:(?P<scheme>https?|unix):/+)?(?P<rest>(?(scheme).+|{_HOST}:\d+(?:/.*)?))", re.IGNORECASE)


def url_in(path: object) -> str | None:
    """The URL that was typed for a file, of which a path has lost a slash; without a user and his password."""
    found = _URL.fullmatch(str(path))
    if found is None:
        return None
    scheme, rest = (found["scheme"] or "http").lower(), found["rest"].rpartition("@")[2]
    return f"unix:/{rest}" if scheme == "unix" else f"{scheme}://{rest}"


def hinted(told: str, kind: Any) -> str:
    """The message of a ``ValidationError`` against ``kind``, with what is close to the wrong name, else what there is.

    ``Object contains unknown field `num_prompt` (did you mean num_prompts?) - at `$.stages[0]```.
    """
    wrong = _WRONG.search(told)
    if wrong is None:
        return _EXPECTED.sub(_in_words, told)
    at = _AT.search(told)
    path = at["path"] if at else ""
    name, known = wrong["field"], _fields
    if name is None:
        name, known = wrong["value"], _choices
    return told[: wrong.end()] + meant(name, known(path, kind)) + told[wrong.end() :]


def _in_words(found: re.Match[str]) -> str:
    """``Expected `float | null`, got `str``` is ``Expected a number, such as 500, and not a text``."""
    kinds = [kind for kind in found["kinds"].split(" | ") if kind != "null"]
    kinds = [kind for kind in kinds if not (kind == "int" and "float" in kinds)]
    told = f"Expected {' or '.join(_KINDS.get(kind, kind) for kind in kinds)}"
    if found["limit"]:
        sign, _, end = found["limit"].strip().partition(" ")
        told += f" {_LIMITS[sign]} {end}"
    elif len(kinds) == 1:
        told += _SUCH_AS.get(kinds[0], "")
    return f"{told}, and not {_KINDS.get(found['got'], found['got'])}" if found["got"] else told


def meant(name: str, known: Iterable[str]) -> str:
    """`` (did you mean x?)``, `` (there are: x, y)``, or nothing where nothing can be said in few words."""
    names = list(dict.fromkeys(known))
    return near(name, names) or _listed(names)


def near(name: str, known: Iterable[str]) -> str:
    """`` (did you mean x?)``, or nothing."""
    found = get_close_matches(name, list(known))
    return f" (did you mean {' or '.join(found)}?)" if found else ""


def _listed(names: list[str]) -> str:
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
