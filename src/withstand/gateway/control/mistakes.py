"""What is wrong with a question to the control plane, in sentences that name the field and the cure: pure.

FastAPI tells of it in pydantic's words, which are for programmers.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from withstand.hints import meant

MUST_BE = {
    "model": "a model's name",
    "url": "an engine's address, such as http://127.0.0.1:8000",
    "weight": "a number from 0 (no traffic) to 1000",
    "max_in_flight": "a whole number from 1 on",
    "served": "the name that the engine has for the model",
    "served_as": "the name that the engine has for the model",
    "role": '"prefill" or "decode"',
    "bootstrap_port": "a port, from 1 to 65535",
    "backup": "true or false",
    "draining": "true or false",
    "since": "a day, such as 2026-11-01",
    "until": "a day, such as 2026-11-30",
    "key": "a key's name",
}
"""All fields that somebody may get wrong."""
_SAME = ("served", "served_as")
_SHOWN_CHARS = 200


def told(errors: Iterable[Mapping[str, Any]], fields: Sequence[str]) -> str:
    """A sentence for each error, as pydantic has it; ``fields`` are those of the body that was wanted."""
    return " ".join(dict.fromkeys(_told(error, fields) for error in errors))


def unknown(field: str, fields: Sequence[str]) -> str:
    """One that there is not among those."""
    return f"There is no field {field[:_SHOWN_CHARS]!r}{meant(field, fields)}; correct it, or leave it out."


def unread(e: BaseException | None) -> str:
    """Why a body could not be read at all."""
    if isinstance(e, UnicodeDecodeError):
        return "The body is no JSON: it is not UTF-8; encode it so."
    if isinstance(e, RecursionError):
        return "The body is nested too deeply; give a JSON object of plain values."
    return "The body has a number of too many digits; correct it."


def astray(path: str, known: Iterable[str]) -> str:
    """There is nothing at the path; ``known`` are those where there is."""
    path = path[:_SHOWN_CHARS]
    found = get_close_matches(path.lower(), known, n=1)
    hint = f"; did you mean {found[0]}?" if found else "."
    return f"There is no {path}{hint} GET /docs lists all routes."


def otherwise(path: str, methods: Sequence[str]) -> str:
    """It is there, but asked in another way."""
    *others, last = methods
    return f"{path} is asked by {', '.join(others)}{' or ' if others else ''}{last}."


def _told(error: Mapping[str, Any], fields: Sequence[str]) -> str:
    _, *where = error["loc"]
    if error["type"] == "json_invalid":
        said = str(error["ctx"]["error"]).lower()
        return f"The body is no JSON: {said} (character {where[0]}); correct it."
    if not where:
        return f"The body must be a JSON object, with {', '.join(fields)}."
    field = ".".join(map(str, where))
    if error["type"] == "extra_forbidden" and field in _SAME and "served" in fields:
        return "The fields 'served' and 'served_as' are the same, and both are given; keep one."
    if error["type"] == "extra_forbidden":
        return unknown(field, fields)
    cure = MUST_BE.get(field, "something else")
    if error["type"] == "missing":
        return f"The field {field!r} is missing; give {cure}."
    return f"The field {field!r} must be {cure}."
