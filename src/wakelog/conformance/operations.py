"""The operations of the protocol, and which of them a server may leave out.

A server may have more (ours has; docs/reference/http.md). What is here means the same everywhere.
"""

from __future__ import annotations

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
"""Method and path → the capability it belongs to; empty: every server has it."""
