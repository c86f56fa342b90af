"""The types of the TypeScript client, from the schemas of the protocol; docs/generate.py writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from docs import protocol

FILE = Path(__file__).resolve().parent.parent / "clients" / "typescript" / "src" / "protocol.ts"
_HEAD = """\
// The shapes of the protocol, from docs/reference/protocol.schema.json. Written by docs/generate.py; do not edit.

import type { Json, JsonObject } from "./json.ts";
"""
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def text() -> str:
    shapes = json.loads(protocol.schema())["$defs"]
    return _HEAD + "".join(f"\n{_declaration(name, shape)}\n" for name, shape in shapes.items())


def _declaration(name: str, shape: dict[str, Any]) -> str:
    comment = _comment(shape.get("description", ""), "")
    if "properties" in shape:
        return f"{comment}export interface {_name(name)} {_members(shape)}"
    return f"{comment}export type {_name(name)} = {_type(shape)};"


def _members(shape: dict[str, Any], indent: str = "") -> str:
    needed = shape.get("required", ())
    lines = []
    for name, part in shape["properties"].items():
        mark = "" if name in needed else "?"
        lines.append(f"{_comment(part.get('description', ''), indent + '  ')}{indent}  {name}{mark}: {_type(part)};\n")
    return "{\n" + "".join(lines) + f"{indent}}}" if lines else "{}"


def _type(shape: dict[str, Any]) -> str:
    if "$ref" in shape:
        return _name(shape["$ref"].rpartition("/")[2])
    if "const" in shape:
        return json.dumps(shape["const"])
    if "enum" in shape:
        return " | ".join(json.dumps(each) for each in shape["enum"])
    for several in ("anyOf", "oneOf"):
        if several in shape:
            return " | ".join(dict.fromkeys(_type(each) for each in shape[several]))
    kind = shape.get("type")
    if kind == "array":
        if "prefixItems" in shape:
            return f"[{', '.join(map(_type, shape['prefixItems']))}]"
        return f"Array<{_type(shape['items'])}>" if "items" in shape else "Json[]"
    if kind == "object":
        if "properties" in shape:
            return _members(shape)
        values = shape.get("additionalProperties")
        return f"Record<string, {_type(values)}>" if isinstance(values, dict) else "JsonObject"
    return _PLAIN.get(str(kind), "Json")


def _name(name: str) -> str:
    """`Page_SessionInfo_` is `PageSessionInfo` there."""
    return re.sub(r"_(.?)", lambda found: found[1].upper(), name)


def _comment(sentence: str, indent: str) -> str:
    return f"{indent}/** {' '.join(sentence.split())} */\n" if sentence else ""
