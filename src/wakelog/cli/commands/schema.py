"""`wakelog schema`: prints the JSON Schemas of everything that is written as JSON.

They are generated with the docs and shipped as a file, so that printing them needs no store.
"""

from __future__ import annotations

import importlib.resources
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.errors import NotFoundError

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "kind": {"type": "string"},
                "message": {"type": "string"},
                "hint": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "retryable": {"type": "boolean"},
            },
            "required": ["kind", "message", "hint", "retryable"],
        }
    },
    "required": ["error"],
}


@click.command("schema")
@click.argument("name", required=False, default="")
@click.option("--list", "only_names", is_flag=True, help="List the names.")
@common
def schema_command(ctx: CommandContext, name: str, only_names: bool) -> None:
    """Print a JSON Schema: of what a command prints with --json (wakelog.log/1), of the state document (state), of an
    event's body (event:fact.recorded), or of errors (error). Without a name, print all of them.

    Within a version, fields are never renamed or removed; new ones may be added.

    Examples:
      wakelog schema --list
      wakelog schema wakelog.calls/1
      wakelog schema event:decision.made
    """
    schemas = _schemas()
    if only_names:
        ctx.answer("schemas", list(schemas), schemas, records=[{"name": schema} for schema in schemas])
        return
    if name and name not in schemas:
        import difflib

        full = f"wakelog.{name}/1"
        close = next(iter(difflib.get_close_matches(full, schemas, 1, 0.8)), "")
        like = full if full in schemas else close
        raise NotFoundError(
            f"there is no schema {name!r}",
            kind="schema-not-found",
            hint=f"wakelog schema {like}" if like else "wakelog schema --list",
        )
    if ctx.ndjson:
        for schema in [name] if name else schemas:
            ctx.record("schema", {"name": schema, "document": schemas[schema]})
        return
    ctx.print_json(schemas[name] if name else schemas)


def _schemas() -> dict[str, Any]:
    """Every schema by its name, each with its definitions."""
    text = importlib.resources.files("wakelog.cli").joinpath("schemas.json").read_bytes()
    file: dict[str, Any] = msgspec.json.decode(text)
    out = {f"wakelog.{name}/1": _document(name, data, file["shapes"]) for name, data in file["answers"].items()}
    out["error"] = {"$schema": DRAFT, "title": "an error, on stderr with --json", **_ERROR}
    out["state"] = file["state"]
    for kind, shape in file["events"].items():
        parts = _referenced(shape, file["event_parts"])
        title = {"$schema": DRAFT, **shape, "title": f"the body of {kind}, as it is given to append"}
        out[f"event:{kind}"] = {**title, "$defs": parts} if parts else title
    return out


def _document(name: str, data: Any, shapes: dict[str, Any]) -> dict[str, Any]:
    return {
        "$schema": DRAFT,
        "title": f"what a command prints with --json as wakelog.{name}/1",
        "type": "object",
        "properties": {
            "schema": {"const": f"wakelog.{name}/1"},
            "store": {"type": "string"},
            "data": data,
            "next": {},
            "warnings": {"type": "array"},
        },
        "required": ["schema", "store", "data", "next", "warnings"],
        "$defs": _referenced(data, shapes),
    }


def _referenced(schema: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The definitions that a schema refers to, directly or through others."""
    results: dict[str, Any] = {}
    queue = [schema]
    while queue:
        node = queue.pop()
        if isinstance(node, dict):
            name = str(node.get("$ref", "")).removeprefix("#/$defs/")
            if name in known and name not in results:
                results[name] = known[name]
                queue.append(known[name])
            queue += node.values()
        elif isinstance(node, list):
            queue += node
    return dict(sorted(results.items()))
