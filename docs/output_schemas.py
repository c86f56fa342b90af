"""The schemas that `wakelog schema` prints, written from the pages and the code.

What commands print is described in reference/json.md, a section for each shape; its tables are read here, so that page
and schema cannot differ. Events and the state document come from their types.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from wakelog.model.events import KINDS

LINK = re.compile(r"\[[^]]*\]\(#([\w-]+)\)")
_SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `([\w$]+)` \|([^|]*)\|([^|]*)\|$", re.MULTILINE)
_ANSWER = re.compile(r'\.(?:answer|answer_found|done|record|tell)\(\s*"([a-z-]+)"')
_PLAIN = {
    "string": {"type": "string"},
    "strings": {"type": "string"},
    "integer": {"type": "integer"},
    "integers": {"type": "integer"},
    "number": {"type": "number"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "objects": {"type": "object"},
    "lists": {"type": "array"},
    "pairs": {"type": "array"},
    "list": {"type": "array"},
    "any": {},
}


def text(page: str, commands: str, state: dict[str, Any]) -> str:
    """The file that is shipped. `commands` is the source of the commands, which names the shapes that are answers."""
    sections = {_anchor(name): body for names, body in _SECTION.findall(page) for name in names.split(", ")}
    shapes = {name: _shape(body) for name, body in sections.items() if _ROW.search(body)}
    answered = set(_ANSWER.findall(commands))
    answers = {name: _answer(name, body, shapes) for name, body in sections.items() if name in answered}
    events, parts = msgspec.json.schema_components(list(KINDS.values()), ref_template="#/$defs/{name}")
    kinds = {kind: parts[each["$ref"].rpartition("/")[2]] for kind, each in zip(KINDS, events, strict=True)}
    document = {
        "answers": {name: answers[name] for name in sorted(answers)},
        "shapes": {name: shapes[name] for name in sorted(shapes)},
        "events": {kind: kinds[kind] for kind in sorted(kinds)},
        "event_parts": {n: p for n, p in sorted(parts.items()) if p not in kinds.values()},
        "state": state,
    }
    return _a_line_each(document)


def _a_line_each(document: dict[str, dict[str, Any]]) -> str:
    """The document as JSON, with a line for each definition: much shorter than an indented one, and a diff still shows
    which definition changed."""
    parts = [f"{_json(name)}:{{\n{_members(part)}\n}}" for name, part in document.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _members(part: dict[str, Any]) -> str:
    return ",\n".join(f"{_json(key)}:{_json(value)}" for key, value in part.items())


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _answer(name: str, body: str, shapes: dict[str, Any]) -> dict[str, Any]:
    """What `data` is. A section without a table of its own speaks of another shape."""
    prose = _ROW.split(body)[0].strip()
    linked = LINK.search(prose)
    one = {"$ref": f"#/$defs/{name}"} if name in shapes else {"$ref": f"#/$defs/{linked[1]}"} if linked else {}
    is_list = prose.startswith("A list") or prose.startswith("With `--once` a list")
    return {"type": "array", "items": one} if is_list else one


def _shape(body: str) -> dict[str, Any]:
    rows = _ROW.findall(body)
    # Where the words say that fields come and go, only their types hold.
    prose = re.sub(r"^\|.*$", "", body, flags=re.MULTILINE)
    is_fixed = not re.search(r"[Ww]ith `-|replaces|\bgives? a list of these|without an outcome", prose)
    out: dict[str, Any] = {
        "type": "object",
        "properties": {name: _described(_type(kind), meaning) for name, kind, meaning in rows},
    }
    return {**out, "required": [name for name, _, _ in rows]} if is_fixed else out


def _described(schema: dict[str, Any], meaning: str) -> dict[str, Any]:
    words = LINK.sub(lambda m: m[1], meaning.strip()).replace("`", "")
    return {**schema, "description": words} if words else schema


def _type(words: str) -> dict[str, Any]:
    words = words.strip()
    rest = re.sub(r",? or null$", "", words)
    one = _one(rest)
    return {"anyOf": [one, {"type": "null"}]} if rest != words else one


def _one(words: str) -> dict[str, Any]:
    linked = LINK.fullmatch(words)
    if linked:
        return {"$ref": f"#/$defs/{linked[1]}"}
    if words.startswith("list of "):
        return {"type": "array", "items": _one(words.removeprefix("list of "))}
    if words not in _PLAIN:
        raise ValueError(f"docs/reference/json.md: {words!r} is no type that a schema has")
    return dict(_PLAIN[words])


def _anchor(name: str) -> str:
    return name.strip().replace(" ", "-")
