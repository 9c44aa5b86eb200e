"""JSON schemas of the files that people and programs write or read: the plan, the record."""

from collections.abc import Mapping, Sequence

import msgspec

from withstand.record import Record
from withstand.spec import Plan

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES: Mapping[str, type] = {"plan": Plan, "record": Record}

SUBJECTS = tuple(_TYPES)


def json_schema(subjects: Sequence[str]) -> bytes:
    """One document for one or several subjects: a value is valid when it is one of them."""
    schemas, definitions = msgspec.json.schema_components([_TYPES[s] for s in subjects], ref_template="#/$defs/{name}")
    body = schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}
    document = {"$schema": _DIALECT, **body, "$defs": definitions}
    return msgspec.json.format(msgspec.json.encode(document), indent=2)
