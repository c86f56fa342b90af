"""`wakelog schema`: what commands print is what the schemas say, and every name leads to one."""

import json
from typing import Any

import jsonschema
import pytest

from tests.cli.conftest import Cli
from wakelog.model.events import KINDS


@pytest.fixture
def schemas(cli: Cli) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cli("schema").out)
    return found


@pytest.mark.parametrize(
    "args",
    [
        ("status", "fix-auth"),
        ("ls",),
        ("log", "fix-auth"),
        ("log", "fix-auth", "--events"),
        ("show", "fix-auth@4"),
        ("state", "-s", "fix-auth"),
        ("diff", "fix-auth@4"),
        ("compare", "fix-auth", "try-redis"),
        ("attempts", "fix-auth@4"),
        ("blame", "-s", "fix-auth"),
        ("why", "-s", "fix-auth", "e57"),
        ("taint", "-s", "fix-auth"),
        ("context", "fix-auth"),
        ("brief", "fix-auth"),
        ("search", "nullable"),
        ("query", "select 1"),
        ("ps",),
        ("calls", "fix-auth"),
        ("op", "log", "fix-auth"),
        ("verify", "fix-auth"),
        ("anchor", "fix-auth"),
        ("audit", "fix-auth"),
        ("pending", "fix-auth"),
    ],
)
def test_what_a_command_prints_is_what_its_schema_says(
    look: Cli, schemas: dict[str, Any], args: tuple[str, ...]
) -> None:
    document = look(*args, "--json").json
    jsonschema.validate(document, schemas[document["schema"]])


def test_one_operation_has_a_schema_too(look: Cli, schemas: dict[str, Any]) -> None:
    number = look("op", "log", "fix-auth", "--json").data[0]["seq"]
    document = look("op", "show", f"op:{number}", "-s", "fix-auth", "--json").json
    jsonschema.validate(document, schemas["wakelog.op/1"])


def test_a_document_that_lost_a_field_is_refused(look: Cli, schemas: dict[str, Any]) -> None:
    document = look("calls", "fix-auth", "--json").json
    del document["data"][0]["outcome"]
    with pytest.raises(jsonschema.ValidationError, match="outcome"):
        jsonschema.validate(document, schemas["wakelog.calls/1"])


def test_errors_and_states_have_schemas_too(look: Cli, schemas: dict[str, Any]) -> None:
    jsonschema.validate(json.loads(look("status", "nobody", "--json").err), schemas["error"])
    jsonschema.validate(look("state", "-s", "fix-auth", "--json").data["value"], schemas["state"])


def test_every_schema_is_one_and_complete(schemas: dict[str, Any]) -> None:
    assert {f"event:{kind}" for kind in KINDS} <= set(schemas)
    for name, schema in schemas.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        known = set(schema.get("$defs", {}))
        used = {part.split('"')[0] for part in json.dumps(schema).split("#/$defs/")[1:]}
        assert used <= known, name


def test_one_is_printed_by_name_and_a_wrong_name_is_told(cli: Cli, schemas: dict[str, Any]) -> None:
    assert json.loads(cli("schema", "wakelog.log/1").out) == schemas["wakelog.log/1"]
    assert cli("schema", "--list").lines == list(schemas)
    records = cli("schema", "event:fact.recorded", "--ndjson").records
    assert [each["name"] for each in records] == ["event:fact.recorded"]
    wrong = cli("schema", "log", "--json")
    assert wrong.code == 3
    assert wrong.error["hint"] == "wakelog schema wakelog.log/1"
    assert cli("schema", "nothing-like-it", "--json").error["hint"] == "wakelog schema --list"
