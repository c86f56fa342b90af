"""The generated parts of docs/reference/protocol.md and its JSON Schemas; docs/generate.py writes them.

Rules are the sentences of the conformance kit's checks, so that the page asks for nothing the kit does not hold and the
kit for nothing the page does not say. Operations, shapes and statuses are those of our server's own table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from docs.prose import fill
from wakelog.conformance import CAPABILITIES, all_checks
from wakelog.conformance.kit import GROUPS
from wakelog.conformance.operations import OPERATIONS
from wakelog.http.openapi import document
from wakelog.http.problems import KINDS, STATUSES

SCHEMA = Path(__file__).resolve().parent / "reference" / "protocol.schema.json"
_REF = "#/components/schemas/"


def _operations(old: str) -> str:
    lines = ["| operation | scope | offered by | takes | gives |", "| --- | --- | --- | --- | --- |"]
    for (method, path), needs in OPERATIONS.items():
        found = document()["paths"][path][method.lower()]
        status, answer = next((s, a) for s, a in found["responses"].items() if s.startswith("2"))
        takes = [_body(found["requestBody"]["content"])] if "requestBody" in found else []
        takes += [f"`{each['name']}`" for each in found.get("parameters", ()) if each["in"] == "query"]
        gives = (
            _body(answer["content"])
            + (f" ({status})" if status != "200" else "")
            + (" ⟳" if "304" in found["responses"] else "")
        )
        offered = f"`{needs}`" if needs else "all"
        lines.append(
            f"| `{method} {path}`<br>{found['summary']} | {found['x-wakelog-scope']} | {offered} "
            f"| {', '.join(takes)} | {gives} |"
        )
    return "\n".join(lines)


def _body(content: dict[str, Any]) -> str:
    [(media, told)] = content.items()
    ref = told["schema"].get("$ref")
    return ref.removeprefix(_REF) if ref else f"`{media}`"


def _capabilities(old: str) -> str:
    return "\n".join(f"- `{name}`: {text}" for name, text in CAPABILITIES.items())


def _statuses(old: str) -> str:
    lines = ["| status | `group`, or `kind` where HTTP has a word of its own |", "| --- | --- |"]
    by_status: dict[int, list[str]] = {}
    for cls, status in STATUSES.items():
        by_status.setdefault(status, []).append(f"`{cls.kind}`")
    for kind, status in KINDS.items():
        by_status.setdefault(status, []).append(f"kind `{kind}`")
    return "\n".join([*lines, *(f"| {status} | {', '.join(by_status[status])} |" for status in sorted(by_status))])


def _rules(group: str) -> Callable[[str], str]:
    def write(old: str) -> str:
        found = [each for each in all_checks() if each.group == group]
        return "\n".join(
            fill(f"- {each.rule} *{each.name}*{f' (`{each.needs}`)' if each.needs else ''}", "  ") for each in found
        )

    return write


PARTS: dict[str, Callable[[str], str]] = {
    "protocol-capabilities": _capabilities,
    "protocol-operations": _operations,
    "protocol-statuses": _statuses,
    **{f"rules-{group}": _rules(group) for group in GROUPS},
}


def schema() -> str:
    """JSON Schemas of everything that the operations take and give."""
    whole = document()
    known = whole["components"]["schemas"]
    wanted = {"Problem"}
    for method, path in ((method.lower(), path) for method, path in OPERATIONS):
        wanted |= _refs(whole["paths"][path][method])
    parts: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        parts[name] = known[name]
        wanted |= _refs(known[name]) - set(parts)
    parts["EventRecord"] = known["EventRecord"]
    out = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "wakelog protocol, version 1",
        "$defs": dict(sorted(parts.items())),
    }
    text = msgspec.json.format(msgspec.json.encode(out), indent=2).decode()
    return text.replace(_REF, "#/$defs/") + "\n"


def _refs(value: Any) -> set[str]:
    return set(re.findall(rf'"{_REF}([^"]+)"', msgspec.json.encode(value).decode()))
