"""What two stacks' files start, compared table by table. The plan starts nothing, so it is no part of it. Pure."""

import hashlib
from typing import Any

import msgspec

from withstand.spec.stack import Stack

_NO_TABLES = frozenset({"name", "plan", "engines"})


def tables_of(stack: Stack) -> dict[str, Any]:
    """``engines.NAME``, ``gateway`` and so on → what stands there; what is not given is None."""
    engines = {f"engines.{name}": engine for name, engine in stack.engines.items()}
    rest = {field: getattr(stack, field) for field in stack.__struct_fields__ if field not in _NO_TABLES}
    return engines | rest


def differing(one: Stack, other: Stack) -> list[str]:
    """The tables of which they would start something else; the order of engines counts, the first may be the door."""
    found = unlike(tables_of(one), tables_of(other))
    return found or (["engines"] if list(one.engines) != list(other.engines) else [])


def unlike(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Keys under which they have not the same."""
    return [key for key in dict.fromkeys([*one, *other]) if one.get(key) != other.get(key)]


def prints_of(stack: Stack) -> dict[str, str]:
    """A hash of each table: enough to see a change, and nothing of what may be private in it."""
    return {key: hashlib.sha256(msgspec.json.encode(table)).hexdigest() for key, table in tables_of(stack).items()}


def print_of_plan(plan: dict[str, Any]) -> str:
    """The same of what is measured there, in whichever order it is written."""
    return hashlib.sha256(msgspec.json.encode(plan, order="sorted")).hexdigest()


def in_brackets(tables: list[str]) -> str:
    """``[engines.a] and [gateway] are``, as they stand in a file."""
    told = [f"[{table}]" for table in tables]
    return f"{' and '.join(told)} {'is' if len(told) == 1 else 'are'}"
