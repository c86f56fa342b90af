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
from wakelog.http.openapi import document
from wakelog.http.problems import KINDS, STATUSES

SCHEMA = Path(__file__).resolve().parent / "reference" / "protocol.schema.json"
_REF = "#/components/schemas/"
_S = "/v1/sessions/{session}"

OPERATIONS: dict[tuple[str, str], str] = {
    ("GET", "/v1/info"): "",
    ("POST", "/v1/sessions"): "",
    ("GET", "/v1/sessions"): "list",
    ("GET", _S): "",
    ("GET", f"{_S}/head"): "",
    ("POST", f"{_S}/events"): "",
    ("GET", f"{_S}/events"): "",
    ("GET", f"{_S}/events/{{place}}"): "",
    ("GET", f"{_S}/state"): "",
    ("GET", f"{_S}/messages"): "views",
    ("POST", f"{_S}/rewind"): "",
    ("POST", f"{_S}/undo"): "",
    ("POST", f"{_S}/fork"): "",
    ("POST", f"{_S}/pause"): "",
    ("POST", f"{_S}/resume"): "",
    ("POST", f"{_S}/close"): "",
    ("POST", f"{_S}/reopen"): "",
    ("POST", f"{_S}/archive"): "",
    ("GET", f"{_S}/tail"): "tail",
    ("GET", "/v1/tail"): "feed",
    ("POST", f"{_S}/checkpoint"): "names",
    ("POST", f"{_S}/patch"): "patch",
    ("POST", f"{_S}/lease"): "lease",
    ("POST", f"{_S}/lease/beat"): "lease",
    ("POST", f"{_S}/lease/release"): "lease",
    ("GET", f"{_S}/anchor"): "verify",
    ("GET", f"{_S}/verify"): "verify",
    ("POST", f"{_S}/verify"): "verify",
    ("GET", f"{_S}/bundle"): "bundle",
    ("POST", "/v1/bundles"): "bundle",
    ("POST", f"{_S}/erase"): "removal",
    ("DELETE", _S): "removal",
}
"""The operations of the protocol: method and path → the capability it belongs to; empty: every server has it. A server
may have more, as ours does (docs/reference/http.md)."""


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
