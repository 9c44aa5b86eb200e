"""A Kubernetes object held against a structural schema as CRDs have them, strictly: unknown fields are wrong.

Of JSON schema it knows what those schemas use; rules in CEL (``x-kubernetes-validations``) it does not compute.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_LIMITS = (
    ("minimum", lambda value, limit: value >= limit),
    ("maximum", lambda value, limit: value <= limit),
    ("minLength", lambda value, limit: len(value) >= limit),
    ("maxLength", lambda value, limit: len(value) <= limit),
    ("minItems", lambda value, limit: len(value) >= limit),
    ("maxItems", lambda value, limit: len(value) <= limit),
    ("maxProperties", lambda value, limit: len(value) <= limit),
    ("enum", lambda value, limit: value in limit),
    ("pattern", lambda value, limit: re.search(limit, value) is not None),
)


def schemas(folder: Path) -> dict[tuple[str, str], Schema]:
    """(apiVersion, kind) → schema, of all CRDs below a folder."""
    found = {}
    for path in sorted(folder.rglob("*.yaml")):
        for crd in yaml.safe_load_all(path.read_text("utf-8")):
            if crd and crd.get("kind") == "CustomResourceDefinition":
                spec = crd["spec"]
                for version in spec["versions"]:
                    key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
                    found[key] = version["schema"]["openAPIV3Schema"]
    return found


def faults(value: Any, schema: Schema, at: str = "$") -> Iterator[str]:
    """What is wrong with it, each with its place. A field that the schema does not know is wrong too."""
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str):
            yield f"{at}: neither a number nor a text"
        return
    kind = schema.get("type")
    if kind and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        yield f"{at}: {value!r} is no {kind}"
        return
    yield from (
        f"{at}: {value!r} breaks {name} {schema[name]}"
        for name, holds in _LIMITS
        if _breaks(value, schema, name, holds)
    )
    if isinstance(value, dict) and at != "$.metadata":
        yield from _of_object(value, schema, at)
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), f"{at}[{place}]")


def _breaks(value: Any, schema: Schema, name: str, holds: Any) -> bool:
    return name in schema and not holds(value, schema[name])


def _of_object(value: dict[str, Any], schema: Schema, at: str) -> Iterator[str]:
    yield from (f"{at}: {name} is missing" for name in schema.get("required", ()) if name not in value)
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or others is True
    for name, item in value.items():
        if name in known:
            yield from faults(item, known[name], f"{at}.{name}")
        elif isinstance(others, dict):
            yield from faults(item, others, f"{at}.{name}")
        elif not is_open:
            yield f"{at}: {name} is not known"
