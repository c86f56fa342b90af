"""Names and opens imported sessions: the tool's name and the start of the tool's own id.

`claude-5c0375b4` is short enough to type, and can be found from the tool's side. The whole id is in the label `origin`.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from wakelog.importers.source.files import storable
from wakelog.importers.steps import TranscriptHead
from wakelog.log.deleted_origins import was_deleted
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.session import Session
from wakelog.store import Store

SHORT = {
    "claude-code": "claude",
    "gemini-cli": "gemini",
    "qwen-code": "qwen",
    "copilot-cli": "copilot",
    "kimi-code": "kimi",
    "swe-agent": "swe",
    "mini-swe-agent": "mini",
    "tau-bench": "tau",
    "otel-spans": "otel",
}
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ODD = re.compile(r"[^A-Za-z0-9._-]+")
NAME_MAX = 72


def session_name(store: Store, agent: str, origin: str, name: str = "") -> str:
    """The session name of a transcript. If another session has the short name, the name is made from the whole
    origin."""
    prefix = SHORT.get(agent, agent)
    short = f"{prefix}-{_slug(name or _UUID.sub(_short_uuid, origin).removeprefix('session_'))}"
    if _is_free_for(store, short, origin):
        return short
    return f"{prefix}-{_slug(origin)}"


def open_session(
    store: Store, head: TranscriptHead, name: str, parent: str, labels: dict[str, str], at: int
) -> Session[Any]:
    """Opens the session of a transcript that started at `at`. A sub-agent's session links to its parent by name:
    `session@seq` of the event that spawned it, with seq 0 because that is unknown here."""
    labels = {"agent": head.agent, "origin": head.origin, **head.labels, **labels}
    return store.session(
        name,
        goal=head.goal or None,
        agent=head.agent,
        labels={k: str(storable(v)) for k, v in labels.items() if v},
        limits={},
        spawner=f"{store.reserve(parent)}@0" if parent else "",
        occurred_at=at,
        folder="",
    )


def reopen_session(session: Session[Any], seen: Seq, at: int) -> Seq:
    """Reopens a session that was closed, for new records. Returns its last event."""
    if session.status not in ("closed", "archived"):
        return seen
    return session.append(EventDraft(ev.SessionReopened(occurred_at=at), actor="runtime"), expect=seen).seq


def is_deleted(store: Store, head: TranscriptHead) -> bool:
    """Whether a transcript's session was deleted, or for a sub-agent without a session, its parent's."""
    if store.is_open(session_name(store, head.agent, head.origin, head.name)):
        return False
    if was_deleted(store.engine, head.agent, head.origin):
        return True
    return bool(head.parent) and is_deleted(store, TranscriptHead(head.parent, head.agent))


def _short_uuid(match: re.Match[str]) -> str:
    # UUIDs of version 7 start with the time, so those of one day look alike. Their ends differ.
    uuid = match[0]
    return uuid[-8:] if uuid[14] == "7" else uuid[:8]


def _slug(text: str) -> str:
    """The text as a part of a name. If none of its characters may stand in one, the start of its hash."""
    slug = _ODD.sub("-", text).strip("-.")[-NAME_MAX:].lstrip("-.")
    return slug or hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def _is_free_for(store: Store, name: str, origin: str) -> bool:
    if not store.is_open(name):
        return True
    labels = store.resume(name).log.part("labels")
    return not isinstance(labels, dict) or labels.get("origin", origin) == origin
