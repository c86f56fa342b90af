"""Which events are sent, and what a message contains.

A message names the event, so that its receiver can find the rest with `wakelog show`. Texts (of flags, questions and
errors) are included only if the hook has `content`. The id of a message is made from the hook, the session and the
event, so a receiver recognises a message that is sent again.
"""

from __future__ import annotations

import datetime
import hashlib
from typing import Any

import msgspec

from wakelog.log.reader import Entry
from wakelog.model.json_fields import as_dict, text_in
from wakelog.session import Session
from wakelog.timeline.slices import tool_of
from wakelog.webhooks.hooks_file import Webhook

_TOPICS = {
    "flag.raised": "flag",
    "flag.cleared": "flag",
    "action.requested": "approval",
    "action.approved": "approval",
    "action.denied": "approval",
    "input.requested": "approval",
    "input.answered": "approval",
    "turn.ended": "failure",
    "action.uncertain": "failure",
    "budget.reached": "budget",
}
_TYPES = {"action.requested": "approval.requested", "turn.ended": "turn.failed"}
_FIELDS = ("flag", "rule", "severity", "action", "tool", "effect", "request", "by", "limit", "outcome")
_TEXT_FIELDS = ("message", "prompt", "why")


class WebhookMessage(msgspec.Struct, frozen=True):
    """The message about one event."""

    id: str
    type: str
    body: bytes


def message_of(hook: Webhook, session: Session[Any], entry: Entry) -> WebhookMessage | None:
    """The message about an event; None if this hook does not want it."""
    topic = _TOPICS.get(entry.kind)
    if topic not in hook.on or not _is_wanted(hook, entry):
        return None
    body = entry.body
    error = as_dict(body.get("error"))
    name = session.name or session.id
    data: dict[str, Any] = {
        "session": session.id,
        "name": session.name or None,
        "event": entry.seq,
        "hash": entry.hash.hex(),
        "selector": f"{name}@e{entry.seq}",
        "turn": entry.header.turn,
        **{field: text_in(body, field) for field in _FIELDS if text_in(body, field)},
    }
    if entry.kind in ("action.approved", "action.denied", "action.uncertain"):
        data["tool"] = tool_of(session.log, entry, {})
    if error:
        data["error"] = text_in(error, "type")
    if hook.content:
        data |= {field: text_in(body, field) for field in _TEXT_FIELDS if text_in(body, field)}
        if text_in(error, "message"):
            data["message"] = text_in(error, "message")
    return make_message(hook, f"{session.id} {entry.seq}", _TYPES.get(entry.kind, entry.kind), entry.happened_at, data)


def make_message(hook: Webhook, key: str, type: str, at_us: int, data: dict[str, Any]) -> WebhookMessage:
    when = datetime.datetime.fromtimestamp(at_us / 1e6, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    id = "msg_" + hashlib.sha256(f"wakelog webhook {hook.name} {key}".encode()).hexdigest()[:32]
    return WebhookMessage(id, type, msgspec.json.encode({"type": type, "timestamp": when, "data": data}))


def _is_wanted(hook: Webhook, entry: Entry) -> bool:
    body = entry.body
    match entry.kind:
        case "flag.raised":
            return (text_in(body, "severity") or "warning") in hook.severities
        case "action.requested":
            return bool(body.get("approval"))
        case "turn.ended":
            return text_in(body, "outcome") in ("failed", "interrupted")
    return True
