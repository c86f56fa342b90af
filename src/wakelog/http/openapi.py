"""The OpenAPI 3.1 document, made from the table of routes and the types of requests and answers.

Only the introduction is written by hand. Paths and scopes come from the table, parameters and bodies from the structs
that requests are decoded to, descriptions from docstrings.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import sys
from collections.abc import Iterator
from typing import IO, Any

import msgspec
from msgspec import inspect as shape

from wakelog import __version__
from wakelog.engines.remote.wire import JSON, PROBLEM, Problem
from wakelog.http.routes import Raw, Route, all_routes
from wakelog.http.shapes import EventIn
from wakelog.log.admission import OWN_KINDS
from wakelog.model import events as ev

INTRODUCTION = """\
Sessions of AI agents as append-only logs: append, read any state, diff, rewind, fork, follow.

Every request needs a key, `Authorization: Bearer KEY`. A key sees one namespace, or some; `/ns/NAME` before a path
names one. Times are microseconds since the epoch, positions are event numbers. Bodies and answers are JSON; routes
accept and give MessagePack too, with the same fields, where bytes are bytes instead of base64. Errors are problems
(RFC 9457) with a stable `kind`.
"""
_REF = "#/components/schemas/{name}"
Schema = dict[str, Any]


@functools.cache
def document() -> Schema:
    """The whole document."""
    routes = all_routes()
    types = _types(routes)
    found, components = msgspec.json.schema_components(types, ref_template=_REF)
    schemas = {str(kind): schema for kind, schema in zip(types, found, strict=True)}
    _describe_fields(components, types)
    _describe_events(components)
    paths: Schema = {}
    for each in routes:
        paths.setdefault(each.full_path, {})[each.method.lower()] = _operation(each, schemas, components)
    for each in routes:  # queries are listed as parameters instead
        components.pop(getattr(each.query, "__name__", ""), None)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "wakelog",
            "version": __version__,
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "the namespace of the key"}],
        "tags": [{"name": name, "description": text} for name, text in _groups(routes).items()],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "An API key, made by `wakelog key new`."}
            },
        },
    }


def _types(routes: tuple[Route, ...]) -> list[Any]:
    """The types of all requests and answers."""
    wanted: dict[str, Any] = {str(Problem): Problem}
    for each in routes:
        for kind in (each.query, each.body, each.answer):
            if kind is not None and is_struct(kind):
                wanted[str(kind)] = kind
    return [*wanted.values(), *(cls for kind, cls in ev.KINDS.items() if kind not in OWN_KINDS)]


def is_struct(kind: Any) -> bool:
    """Whether a type is encoded as JSON: not bytes, not a stream."""
    return kind is not Raw and kind != IO[bytes] and getattr(kind, "__name__", "") != "Stream"


def _groups(routes: tuple[Route, ...]) -> dict[str, str]:
    return {each.group: (inspect.getmodule(each.verb).__doc__ or "").strip().split("\n")[0] for each in routes}


def _operation(route: Route, schemas: dict[str, Schema], components: Schema) -> Schema:
    summary, _, more = " ".join(route.doc.split()).partition(". ")
    out: Schema = {
        "operationId": route.name,
        "summary": summary.rstrip("."),
        "tags": [route.group],
        "responses": _responses(route, schemas),
    }
    if more:
        out["description"] = more
    if parameters := _parameters(route, schemas, components):
        out["parameters"] = parameters
    if route.body is not None:
        out["requestBody"] = {"required": True, "content": _body(route, schemas)}
    if route.reach == "anyone":
        out["security"] = []
    else:
        out["x-wakelog-scope"] = route.scope if route.reach == "space" else f"{route.scope} for all namespaces"
    return out


def _body(route: Route, schemas: dict[str, Schema]) -> Schema:
    if not is_struct(route.body):
        return {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {JSON: {"schema": schemas[str(route.body)]}}


def _parameters(route: Route, schemas: dict[str, Schema], components: Schema) -> list[Schema]:
    path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.names
    ]
    query: list[Schema] = []
    if route.query is not None:
        struct = components[schemas[str(route.query)]["$ref"].rpartition("/")[2]]
        for name, schema in struct["properties"].items():
            described = {k: v for k, v in schema.items() if k != "description"}
            one: Schema = {"name": name, "in": "query", "schema": _without_null(described)}
            if name in struct.get("required", ()):
                one["required"] = True
            if "description" in schema:
                one["description"] = schema["description"]
            query.append(one)
    return path + query


def _without_null(schema: Schema) -> Schema:
    """A query has no null: a parameter without a value is left out."""
    options = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if not options:
        return schema
    rest = {k: v for k, v in schema.items() if k not in ("anyOf", "default")}
    return {**options[0], **rest} if len(options) == 1 else {**rest, "anyOf": options}


def _responses(route: Route, schemas: dict[str, Schema]) -> Schema:
    if is_struct(route.answer):
        content: Schema = {JSON: {"schema": schemas[str(route.answer)]}}
    else:
        content = {route.media: {"schema": {"type": "string"}}}
    out: Schema = {str(route.status): {"description": "The answer.", "content": content}}
    if route.by_head:
        out[str(route.status)]["headers"] = {
            "ETag": {"description": "Names this answer, until the session moves on.", "schema": {"type": "string"}}
        }
        out["304"] = {"description": "The caller has this answer already: `If-None-Match` names it."}
    out["default"] = {"description": "A problem.", "content": {PROBLEM: {"schema": schemas[str(Problem)]}}}
    return out


def _describe_fields(components: Schema, types: list[Any]) -> None:
    """Adds the docstrings of fields as descriptions."""
    structs: set[type] = set()
    for info in shape.multi_type_info(types):
        _collect(info, structs)
    for cls in structs:
        schema = components.get(cls.__name__)
        if schema is None or "properties" not in schema:
            continue
        if schema.get("description"):
            schema["description"] = " ".join(schema["description"].split())
        for name, text in field_docs(cls).items():
            field = schema["properties"].get(name)
            if field is not None and "description" not in field:
                # A reference may have neighbours since JSON Schema 2020-12.
                field["description"] = text


def _collect(info: Any, structs: set[type]) -> None:
    """All structs that a type is made of."""
    if isinstance(info, shape.StructType):
        if info.cls in structs or not isinstance(info.cls, type):
            return
        structs.add(info.cls)
        parts = [field.type for field in info.fields]
    else:
        parts = [getattr(info, name) for name in ("item_type", "value_type") if hasattr(info, name)]
        parts += [*getattr(info, "types", ()), *getattr(info, "item_types", ())]
    for part in parts:
        _collect(part, structs)


@functools.cache
def field_docs(cls: type) -> dict[str, str]:
    """The docstrings under a struct's fields, including those of its bases."""
    out: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base is object or base is msgspec.Struct or not issubclass(base, msgspec.Struct):
            continue
        written = _classes(base.__module__).get(base.__qualname__)
        for field, after in itertools.pairwise(written.body if written else []):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(after):
                out[field.target.id] = " ".join(after.value.value.split())  # type: ignore[attr-defined]
    return out


@functools.cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """The classes in a module's source by qualified name; empty if the source is not available.

    `inspect.getsource` would parse the whole file again for every class in it."""
    try:
        return dict(_named(ast.parse(inspect.getsource(sys.modules[module])), ""))
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}


def _named(within: ast.AST, prefix: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for node in ast.iter_child_nodes(within):
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name, node
            yield from _named(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _named(node, f"{prefix}{node.name}.<locals>.")
        elif isinstance(node, ast.stmt):
            yield from _named(node, prefix)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _describe_events(components: Schema) -> None:
    """Describes an event to append: one of the kinds, each with its own body, or the caller's own kind."""
    whole = components[EventIn.__name__]
    options: list[Schema] = []
    for kind, cls in ev.KINDS.items():
        if kind in OWN_KINDS:
            continue
        components[cls.__name__]["additionalProperties"] = False
        needs_body = bool(components[cls.__name__].get("required"))
        body = {"$ref": _REF.format(name=cls.__name__)}
        options.append(_event_option(whole, {"const": kind}, body, needs_body))
    options.append(_event_option(whole, {"type": "string", "pattern": r"^x\."}, {"type": "object"}, False))
    components[EventIn.__name__] = {"title": "EventIn", "description": whole.get("description", ""), "oneOf": options}


def _event_option(whole: Schema, kind: Schema, body: Schema, needs_body: bool) -> Schema:
    return {
        "title": kind.get("const", "x.…"),
        "type": "object",
        "properties": {**whole["properties"], "kind": kind, "body": body},
        "required": ["kind", "body"] if needs_body else ["kind"],
        "additionalProperties": False,
    }
