"""What msgspec says of a tree that does not fit its type, in words: with the key's name, and what was meant by it."""

import re
from collections.abc import Container, Iterable, Iterator
from difflib import get_close_matches
from typing import Any

import msgspec
from msgspec import inspect

_WRONG = re.compile(r"(?:unknown field `(?P<field>[^`]*)`|(?:enum )?value '(?P<value>[^']*)')")
_AT = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.([^.\[]+)|\[([^\]]*)\]")
_UNNAMED = "..."
_LISTED_MAX = 12
_SHORT_CHARS = 3
"""Names of no more have letters in common by chance."""
_EXPECTED = re.compile(
    r"Expected `(?P<kinds>[^`]+)`"
    r"(?P<limit> (?:>=|<=|>|<) \S+| of length >= 1| matching regex '.*'(?= - at))?"
    r"(?:, got `(?P<got>\w+)`)?"
)
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "array": "a list",
    "object": "a table of keys",
    "null": "nothing",
}
_SUCH_AS = {"int": ", such as 8"}
_REGEXES = {
    "^/[!-~]*$": "that begins with / and is ASCII without spaces",
    "^https?://[!-~]+$": "that begins with http:// or https:// and is ASCII without spaces",
    "^[A-Za-z0-9-]+$": "of letters, digits and hyphens",
}
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


def explained(told: str, tree: Any, kind: Any) -> str:
    """The message of a ``ValidationError`` of the tree, ``hinted``, and with a table's key (``$.models[...].policy``).

    It is the one with which alone the same is wrong.
    """
    at = _AT.search(told)
    if at is None:
        return hinted(told, kind)
    steps: list[str | int] = []
    for name, index in _STEP.findall(at["path"]):
        key = name or index
        if index == _UNNAMED:
            keys = (key for key in _found(tree, steps) if _says(told, _only(tree, steps, key), kind))
            if (key := next(keys, None)) is None:
                return hinted(told, kind)
            tree = _only(tree, steps, key)
        steps.append(key if name or index == _UNNAMED else int(index))
    there = _found(tree, steps)
    named = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return _AT.sub("", hinted(told, kind, there if isinstance(there, dict) else ())) + f" - at `${named}`"


def _found(tree: Any, steps: list[str | int]) -> Any:
    for step in steps:
        tree = tree[step]
    return tree


def _only(tree: Any, steps: list[str | int], key: str) -> Any:
    """The tree, with that key alone in the table."""
    if not steps:
        return {key: tree[key]}
    first, *rest = steps
    within = _only(tree[first], rest, key)
    return [*tree[:first], within, *tree[first + 1 :]] if isinstance(first, int) else {**tree, first: within}


def _says(told: str, tree: Any, kind: Any) -> bool:
    """Whether the same is wrong with it."""
    try:
        msgspec.convert(tree, kind)
    except msgspec.ValidationError as e:
        return str(e) == told
    return False


def hinted(told: str, kind: Any, given: Container[str] = ()) -> str:
    """The message of a ``ValidationError`` against ``kind``, with what is close to the wrong name, else what there is.

    ``Object contains unknown field `num_prompt` (did you mean num_prompts?) - at `$.stages[0]```. What is ``given``
    already was not meant.
    """
    at = _AT.search(told)
    path = at["path"] if at else ""
    wrong = _WRONG.search(told)
    if wrong is None:
        choices = list(dict.fromkeys(_choices(path, kind)))
        return _EXPECTED.sub(lambda found: _in_words(found, choices), told)
    if wrong["field"] is None:
        hint = meant(wrong["value"], _choices(path, kind))
    else:
        names = list(dict.fromkeys(_fields(path, kind)))
        hint = near(wrong["field"], [name for name in names if name not in given]) or _listed(names)
    return told[: wrong.end()] + hint + told[wrong.end() :]


def _in_words(found: re.Match[str], choices: list[str]) -> str:
    """``Expected `int | null`, got `str``` is ``Expected a whole number, such as 8, and not a text``."""
    kinds = [kind for kind in found["kinds"].split(" | ") if kind != "null"]
    kinds = [kind for kind in kinds if not (kind == "int" and "float" in kinds)]
    told = f"Expected {' or '.join(_KINDS.get(kind, kind) for kind in kinds)}"
    if found["limit"]:
        told += f" {_limit(found['limit'].strip())}"
    elif len(kinds) == 1:
        told += _SUCH_AS.get(kinds[0], "")
    if not found["got"]:
        return told
    told += f", and not {_KINDS.get(found['got'], found['got'])}"
    if kinds == ["str"] and found["got"] in {"int", "float", "bool"}:
        told += _listed(choices) or "; put it in quotes"
    return told


def _limit(told: str) -> str:
    if told.startswith("matching regex "):
        return _REGEXES.get(told.removeprefix("matching regex ")[1:-1], told)
    if told.startswith("of length"):
        return "that is not empty"
    sign, _, end = told.partition(" ")
    return f"{_LIMITS[sign]} {end}"


def meant(name: str, known: Iterable[str]) -> str:
    """`` (did you mean x?)``, `` (there are: x, y)``, or nothing where nothing can be said in few words."""
    names = list(dict.fromkeys(known))
    return near(name, names) or _listed(names)


def near(name: str, known: Iterable[str]) -> str:
    """`` (did you mean x?)``, or nothing."""
    found = [each for each in get_close_matches(name, list(known)) if len(each) > _SHORT_CHARS or each[:1] == name[:1]]
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
