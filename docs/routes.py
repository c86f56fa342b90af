"""The generated parts of docs/reference/http.md; docs/generate.py writes them.

Everything is read from the server's own table of routes and from the types that decode and encode.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from docs.prose import fill
from wakelog.engine import FeedChange, Known, Surgery
from wakelog.engines.remote import wire
from wakelog.http import problems, shapes
from wakelog.http.openapi import document, field_docs
from wakelog.http.routes import Route, all_routes
from wakelog.http.verbs import history as reading
from wakelog.http.verbs import sessions
from wakelog.model.records import Commit, ForkPoint, Head, Heartbeat, Record, Snapshot

_REF = "#/components/schemas/"
SHOWN: dict[str, tuple[type, ...]] = {
    "http-shapes": (
        shapes.HeadAnswer,
        shapes.EventIn,
        sessions.Append,
        sessions.NewSession,
        shapes.Limits,
        shapes.EventRecord,
        reading.EventsPage,
        reading.StateAnswer,
        wire.Info,
        wire.Problem,
    ),
    "http-wire": (
        wire.Submit,
        wire.Answers,
        wire.SubmitAnswer,
        Commit,
        Record,
        ForkPoint,
        Head,
        wire.Read,
        wire.Commits,
        Known,
        FeedChange,
        Snapshot,
        Heartbeat,
        Surgery,
        wire.WaitRequest,
        wire.NewsAnswer,
    ),
}


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(titles)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _routes(old: str) -> str:
    """A table for each group, in the order of the table of routes."""
    groups: dict[str, list[Route]] = {}
    for route in all_routes():
        groups.setdefault(route.group, []).append(route)
    parts = []
    for name, routes in groups.items():
        module = inspect.getmodule(routes[0].verb)
        told = " ".join((module.__doc__ or "").split("\n\n")[0].split()) if module else ""
        rows = [(_what(r), _scope(r), _takes(r), _gives(r)) for r in routes]
        parts.append(
            f"### {name.capitalize()}\n\n{fill(told)}\n\n{_table(('route', 'scope', 'takes', 'gives'), rows)}\n"
        )
    return "\n".join(parts)


def _what(route: Route) -> str:
    summary = " ".join(route.doc.split()).replace("|", "or").replace("docs/reference/format.md", "the format")
    return f"`{route.method} {route.full_path}`<br>{summary}"


def _scope(route: Route) -> str:
    return {"space": route.scope, "server": f"{route.scope}, all namespaces", "anyone": "no key"}[route.reach]


def _operation(route: Route) -> dict[str, Any]:
    found: dict[str, Any] = document()["paths"][route.full_path][route.method.lower()]
    return found


def _takes(route: Route) -> str:
    operation = _operation(route)
    query = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
    body = [_named(operation["requestBody"]["content"])] if "requestBody" in operation else []
    return ", ".join([*body, *(f"`{name}`" for name in query)])


def _gives(route: Route) -> str:
    answer = _named(_operation(route)["responses"][str(route.status)]["content"])
    status = f" ({route.status})" if route.status != 200 else ""
    return answer + status + (" ⟳" if route.by_head else "")


def _named(content: dict[str, Any]) -> str:
    [(media, told)] = content.items()
    ref = told["schema"].get("$ref", "")
    if ref:
        return str(ref.removeprefix(_REF)).rpartition(".")[2]
    return f"`{media}`" if media != "application/json" else "object"


def _statuses(old: str) -> str:
    groups: dict[int, list[str]] = {
        status: [] for status in sorted({*problems.STATUSES.values(), *problems.KINDS.values()})
    }
    for cls, status in problems.STATUSES.items():
        groups[status].append(f"group `{cls.kind}`")
    for kind, status in problems.KINDS.items():
        groups[status].append(f"kind `{kind}`")
    return _table(("status", "for"), ([str(status), ", ".join(named)] for status, named in groups.items()))


def _shapes(types: tuple[type, ...]) -> Callable[[str], str]:
    def write(old: str) -> str:
        return "\n".join(_shape(cls) for cls in types)

    return write


def _shape(cls: type) -> str:
    doc = " ".join(inspect.cleandoc(cls.__doc__ or "").split())
    told = field_docs(cls)
    fields = msgspec.structs.fields(cls)
    rows = [(f"`{f.encode_name}`", _type(f.type), _default(f), told.get(f.name, "")) for f in fields]
    return f"#### {cls.__name__}\n\n{fill(doc)}\n\n{_table(('field', 'type', 'default', ''), rows)}\n"


_WORDS = {
    "str": "string",
    "int": "integer",
    "bool": "boolean",
    "bytes": "bytes",
    "float": "number",
    "None": "null",
    "NoneType": "null",
    "SessionId": "string",
    "Any": "value",
}


def _type(kind: Any) -> str:
    """A type in words."""
    metadata = getattr(kind, "__metadata__", None)
    if metadata is not None:
        return _type(kind.__origin__)
    supertype = getattr(kind, "__supertype__", None)
    if supertype is not None:
        return _type(supertype)
    origin = getattr(kind, "__origin__", None)
    args: tuple[Any, ...] = getattr(kind, "__args__", ())
    if origin is tuple and Ellipsis not in args:
        return f"[{', '.join(map(_type, args))}]"
    if origin in (tuple, list):
        return f"list of {_type(args[0])}"
    if origin is dict:
        return f"object of {_type(args[1])}"
    if str(origin) == "typing.Literal":
        return " or ".join(f"`{each}`" for each in args)
    if args:
        return " or ".join(_type(each) for each in args if each is not msgspec.UnsetType)
    name = getattr(kind, "__name__", str(kind))
    return _WORDS.get(name, name)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return "left out" if value is msgspec.UNSET else f"`{msgspec.json.encode(value).decode()}`"


PARTS: dict[str, Callable[[str], str]] = {
    "http-routes": _routes,
    "http-statuses": _statuses,
    **{name: _shapes(types) for name, types in SHOWN.items()},
}
