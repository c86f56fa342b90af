"""Which paths are pages, and which route of the API returns the same as JSON.

The page itself decides what to show at a path, so all pages are one file. Each page also has a twin in the API: the
path with `.json` appended, or requested with `Accept: application/json`, leads there. With `.ndjson` a list has one
record per line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote, urlencode

_PAGES = frozenset({"s", "x", "compare", "taint", "search", "live", "cost", "audit", "store", "help"})
_POINT = re.compile(r"@(?:-?\d*|~\d+|\d+\.(?:\d+|best))|e\d+|cp:.+|t:.+|(?:first|last)-error|last-user|last-tool")
_SESSION_FILTERS = (
    *("text", "agent", "status", "label", "name", "failed", "live", "pending", "flagged", "parent", "since"),
)
Pairs = Sequence[tuple[str, str]]


def is_page(segments: Sequence[str]) -> bool:
    """Whether a path, in decoded segments, is a page."""
    return not segments or segments == [""] or segments[0] in _PAGES


def twin_of(segments: Sequence[str], query: Pairs) -> str | None:
    """The route of the API, with its query, that returns what a page shows; None for pages without data."""
    asked = dict(query)
    match list(segments):
        case [] | [""] | ["sessions"]:
            return _route("sessions", query=_only(query, *_SESSION_FILTERS))
        case ["search"] if asked.get("q"):
            return _route("search", query=_only(query, "q", "session", "kind", "since"))
        case ["cost"]:
            return _route("cost", query=_only(query, "by", "since", "until"))
        case ["taint"]:
            return _route("taint", query=_only(query, "source", "trust", "part", "wide"))
        case ["live"]:
            return _route("live", query=_only(query, "needs"))
        case ["compare"] if asked.get("a"):
            sides = [("side", value) for name, value in sorted(query) if name in ("a", "b", "c", "d")]
            return _route("compare", query=sides)
        case ["audit"]:
            return _route("holds")
        case ["store"]:
            return _route("store")
        case ["help"]:
            return "/openapi.json"
        case ["x", commit, *_]:
            return _route("commits", commit)
        case ["s", session]:
            return _route("sessions", session)
        case ["s", session, "why"] if asked.get("of") and asked.get("direction") == "effects":
            return _route("sessions", session, "taint", query=[("source", asked["of"])])
        case ["s", session, "why"] if asked.get("of"):
            return _route("sessions", session, "why", query=[("what", asked["of"])])
        case ["s", session, "taint"] if asked.get("source"):
            return _route("sessions", session, "taint", query=_only(query, "source"))
        case ["s", session, "verify"]:
            return _route("sessions", session, "verify")
        case ["s", session, "diff", span]:
            first, between, last = span.partition("..")
            return _route("sessions", session, "diff", query=[("a", first), *([("b", last)] if between else [])])
        case ["s", session, "context", point]:
            return _route("sessions", session, "context", query=[("at", point)])
        case ["s", session, "files", *path] if path:
            whole = [("a", "@0"), ("b", asked.get("at", "@")), ("path", "/".join(path))]
            return _route("sessions", session, "file-diff", query=whole)
        case ["s", session, point, "state", *key] if _POINT.fullmatch(point):
            pointer = "".join("/" + each.replace("~", "~0").replace("/", "~1") for each in key)
            return _route("sessions", session, "state", query=[("at", point), ("pointer", pointer)])
        case ["s", session, point] if re.fullmatch(r"e\d+", point):
            return _route("sessions", session, "events", point)
        case ["s", session, point] if _POINT.fullmatch(point):
            return _route("sessions", session, "events", query=[("place", point)])
    return None


def _only(query: Pairs, *names: str) -> Pairs:
    return [(name, value) for name, value in query if name in names]


def _route(*segments: str, query: Pairs = ()) -> str:
    path = "/v1/" + "/".join(quote(each, safe="@:") for each in segments)
    pairs = [(name, value) for name, value in query if value]
    return path + (f"?{urlencode(pairs)}" if pairs else "")
