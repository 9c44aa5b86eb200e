"""JSON schemas of the files that people and programs write or read: the plan, the stack, the record."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from withstand.record import Record
from withstand.spec import Plan
from withstand.spec.stack import Stack

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: Mapping[str, type] = {"plan": Plan, "stack": Stack, "record": Record}

VARYING: Mapping[str, Sequence[str]] = {
    "Stage": ("max_concurrency",),
    "Constant": ("rate",),
    "Poisson": ("rate",),
    "Gamma": ("rate", "burstiness"),
    "Trace": ("speed",),
}
"""What a plan's file may have as a list, for one stage each: ``withstand.spec.matrix``."""

SUBJECTS = tuple(_TYPES)


def json_schema(subjects: Sequence[str]) -> bytes:
    """One document for one or several subjects: a value is valid when it is one of them."""
    schemas, definitions = msgspec.json.schema_components([_TYPES[s] for s in subjects], ref_template="#/$defs/{name}")
    for owner, fields in VARYING.items():
        if owner in definitions:
            _let_vary(definitions[owner]["properties"], fields)
    body = schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}
    document = {"$schema": _DIALECT, **body, "$defs": definitions}
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _let_vary(properties: dict[str, Any], fields: Sequence[str]) -> None:
    for field in fields:
        one = properties[field]
        properties[field] = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
