"""The schemas that editors and other programs check files with."""

import json
import tomllib
from typing import Any

import pytest
from click.testing import CliRunner

from withstand.app.plans import NAMES
from withstand.app.schema import SUBJECTS, VARYING
from withstand.cli.schema import verb
from withstand.errors import UsageError
from withstand.spec import parse_plan
from withstand.spec.matrix import LOADS


def schema(*argv: str) -> dict[str, object]:
    done = CliRunner().invoke(verb, argv)
    assert done.exit_code == 0
    document: dict[str, object] = json.loads(done.output)
    return document


@pytest.mark.parametrize(("subject", "name"), [("plan", "Plan"), ("record", "Record")])
def test_one_subject(subject: str, name: str) -> None:
    document = schema(subject)
    assert document["$ref"] == f"#/$defs/{name}"


def test_all_subjects_in_one_document() -> None:
    document = schema()
    assert document["anyOf"] == [{"$ref": f"#/$defs/{name}"} for name in ("Plan", "Stack", "Record")]
    assert set(SUBJECTS) == {"plan", "stack", "record"}


def test_every_reference_is_defined() -> None:
    text = json.dumps(schema())
    definitions = schema()["$defs"]
    assert isinstance(definitions, dict)
    referred = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert referred <= set(definitions)


def test_unknown_keys_are_refused_by_the_schema_as_by_the_plan() -> None:
    definitions = schema("plan")["$defs"]
    assert isinstance(definitions, dict)
    assert definitions["Stage"]["additionalProperties"] is False


def test_the_plans_that_come_along_are_printed_as_files() -> None:
    done = CliRunner().invoke(verb, ["plans"])
    tables = [text for text in done.output.split("# --plan ") if text]
    assert [len(parse_plan(tomllib.loads(text.partition("\n")[2])).stages) > 1 for text in tables] == [True] * len(
        NAMES
    )
    assert isinstance(CliRunner().invoke(verb, ["plans", "record"]).exception, UsageError)


def test_what_may_be_a_list_in_a_file_may_be_one_in_the_schema() -> None:
    definitions: Any = schema("plan")["$defs"]
    assert VARYING
    for owner, fields in VARYING.items():
        for field in fields:
            one, several = definitions[owner]["properties"][field]["anyOf"]
            assert several == {"type": "array", "items": one, "minItems": 1}
    varying = {field for fields in VARYING.values() for field in fields}
    assert varying == {path.rpartition(".")[2] for path in LOADS}
