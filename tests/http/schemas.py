"""Checks values against the OpenAPI document, with a third-party validator."""

import json
from typing import Any

import jsonschema
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.http.asking import Reply
from wakelog.http.openapi import document
from wakelog.http.routes import Route

_WHOLE = Resource.from_contents({"$id": "urn:doc", **document()}, default_specification=DRAFT202012)
_REGISTRY: Registry[Any] = Registry().with_resource("urn:doc", _WHOLE)


def check(value: Any, schema: dict[str, Any]) -> None:
    """Raises unless the value fits."""
    text = json.dumps(schema).replace('"#/components', '"urn:doc#/components')
    jsonschema.Draft202012Validator(json.loads(text), registry=_REGISTRY).validate(value)


def check_request(route: Route, body: Any) -> None:
    if isinstance(body, dict):
        operation = document()["paths"][route.full_path][route.method.lower()]
        check(body, operation["requestBody"]["content"]["application/json"]["schema"])


def check_reply(route: Route, reply: Reply) -> None:
    """The status, the type and the content of an answer, or of a problem."""
    responses = document()["paths"][route.full_path][route.method.lower()]["responses"]
    response = responses["default"] if reply.kind else responses[str(reply.status)]
    schema = response["content"][reply.headers["content-type"]]["schema"]
    if reply.headers["content-type"] in ("application/json", "application/problem+json"):
        check(reply.json, schema)
