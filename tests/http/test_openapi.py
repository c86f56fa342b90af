"""The OpenAPI document says what the routes do. test_routes.py checks that requests and answers match it."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import msgspec
import pytest

from tests.http.asking import Asker
from wakelog.http.openapi import document, field_docs
from wakelog.http.routes import all_routes
from wakelog.http.server import RunningServer, serving
from wakelog.http.shapes import EventRecord
from wakelog.http.state import Settings
from wakelog.log.admission import OWN_KINDS
from wakelog.model.events import KINDS

ROUTES = {route.name: route for route in all_routes()}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(Settings(url=str(tmp_path_factory.mktemp("served")), rate=0)) as running:
        yield running


def _operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_route_is_in_it_and_nothing_else() -> None:
    told = {(operation["operationId"], method.upper(), path) for path, method, operation in _operations()}
    assert told == {(r.name, r.method, r.full_path) for r in ROUTES.values()}


def test_it_is_json_and_every_reference_leads_somewhere() -> None:
    text = msgspec.json.encode(document()).decode()
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(document()["components"]["schemas"])
    for name, schema in document()["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema), name


def test_no_schema_is_there_for_nothing() -> None:
    text = msgspec.json.encode(document()).decode()
    unused = [n for n in document()["components"]["schemas"] if f'#/components/schemas/{n}"' not in text]
    assert not unused


def test_names_in_a_path_are_its_parameters() -> None:
    for path, _, operation in _operations():
        named = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
        assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def test_every_operation_says_what_it_is_which_scope_it_needs_and_how_it_fails() -> None:
    for path, _, operation in _operations():
        assert operation["summary"], path
        assert "default" in operation["responses"]
        assert ("x-wakelog-scope" in operation) != (operation.get("security") == [])


def test_every_kind_that_can_be_appended_is_described() -> None:
    options = document()["components"]["schemas"]["EventIn"]["oneOf"]
    kinds = {option["properties"]["kind"].get("const") for option in options} - {None}
    assert kinds == set(KINDS) - set(OWN_KINDS)


def test_fields_carry_what_is_written_under_them() -> None:
    assert field_docs(EventRecord)["hash"] == "The chain's hash after this event."
    described = document()["components"]["schemas"]["EventRecord"]["properties"]["hash"]
    assert described["description"] == "The chain's hash after this event."


def test_it_is_served_to_anyone(running: RunningServer) -> None:
    assert Asker(running.url).get("/openapi.json").json == json.loads(msgspec.json.encode(document()))
