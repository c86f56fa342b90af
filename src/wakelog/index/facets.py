"""The columns and the text of an event: pure functions of its kind and body.

They work on the plain body, not on typed events. A body may be erased, pruned, of an unknown kind or of a newer
version, and still gets a row. A field that is missing or has the wrong type counts as empty.

The *text* of an event is what a person would search for: all its content, without positions, hashes, deltas and file
contents. Only its first TEXT_MAX characters are kept. The *summary* is one short line.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from wakelog.model.agent_words import is_aside, strip_agent_tags
from wakelog.model.calls import BEGIN_KINDS, outcome_of
from wakelog.model.document import agent_ops
from wakelog.model.events import KINDS
from wakelog.model.json_fields import as_text
from wakelog.model.parts import content_text
from wakelog.model.short_text import cut
from wakelog.model.values import Value, as_int

TEXT_MAX = 16 * 1024
"""How many characters of an event can be searched."""
SUMMARY_MAX = 200
VALUE_MAX = 32 * 1024
"""Facts with longer JSON have no value in the index; the log has it."""

EARLY_WORDS = frozenset({"decision.made", "dead_end.noted"})
"""Kinds whose words are added together with their rows, because `known` searches them (knowledge)."""

Fetch = Callable[[dict[str, Value]], Value]
"""From a payload's mention to its content; None if that is gone or is not text."""

_FREE_OUTCOMES = frozenset({"session.closed", "subagent.returned"})
"""Kinds whose outcome is free text: after an erasure it is not known whether it was the default."""
_COMPLETE = _FREE_OUTCOMES | {"turn.ended"}
"""Kinds whose default outcome is `completed`."""

# Fields with positions, ids, hashes, numbers or copies of other texts.
_UNSAID = frozenset((
    "$erased", "action", "after", "after_hash", "after_mode", "approval", "at", "base", "before", "before_hash",
    "before_mode", "context_hash", "cost", "data", "data_schema", "delta", "effect", "epoch", "erased", "evidence",
    "files", "handle", "hash", "input_hash", "key_id", "last_hash", "limits", "media", "missing", "occurred_at",
    "params", "parent", "policy", "spawner", "state_hash", "stop_reason", "stream",
))  # fmt: skip
_UNSAID_ANYWHERE = frozenset({"delta", "$erased"})
# Choices from closed lists: they mean nothing once the rest of the body is erased.
_UNSAID_ONCE_ERASED = _UNSAID | {
    "category",
    "change",
    "mode",
    "outcome",
    "request",
    "role",
    "session",
    "severity",
    "tool",
}
# The text of a message is its content only. A patch is stored as its delta. The holder of a turn is a process, and no
# text. The text of imported records is in the events made from them, and recalled text in the events it came from.
_SAID = {
    "knowledge.recalled": (),
    "message.added": ("content",),
    "items.kept": ("format",),
    "records.imported": ("format", "source"),
    "turn.started": ("input", "id"),
}

# The field with the name that an event is about.
_KEY = {
    "artefact.recorded": "name",
    "budget.reached": "limit",
    "checkpoint.named": "name",
    "context.evicted": "key",
    "context.restored": "key",
    "fact.recorded": "key",
    "fact.retracted": "key",
    "flag.cleared": "flag",
    "flag.raised": "flag",
    "git_commit.linked": "commit",
    "history.adopted": "session",
    "input.answered": "request",
    "input.requested": "request",
    "lease.taken": "holder",
    "resource.touched": "resource",
    "session.forked": "parent",
    "session.opened": "name",
    "subagent.returned": "session",
    "subagent.spawned": "session",
}

# The summary is the first of these fields that is not empty; for other kinds, the text.
_SUMMARY = {
    "action.evidence": ("output", "outcome"),
    "action.failed": ("error", "output"),
    "action.reconciled": ("output_summary", "output"),
    "action.recorded": ("error", "output_summary", "output", "input"),
    "action.requested": ("input",),
    "action.succeeded": ("output_summary", "output"),
    "artefact.recorded": ("name",),
    "decision.made": ("choice",),
    "file.changed": ("path",),
    "git_commit.linked": ("subject",),
    "session.opened": ("goal", "name"),
    "turn.ended": ("error", "why"),
    "turn.started": ("input",),
}


class Facets(msgspec.Struct, gc=False):
    """The columns of an event that come from its body."""

    tool: str = ""
    model: str = ""
    effect: str = ""
    action: str = ""
    path: str = ""
    key: str = ""
    outcome: str = ""
    summary: str = ""
    text: str = ""
    tokens_out: int = 0
    is_priced: bool = False
    """Whether its money was computed from a price, which may be zero."""
    occurred: int = 0


def facets_of(kind: str, body: dict[str, Value], fetch: Fetch, *, has_text: bool = True) -> Facets:
    """The facets of an event's body; of an erased one, what is left. Without `has_text`, `text` stays empty, and only
    the summary is made."""
    out = Facets()
    if type(tool := body.get("tool")) is str:
        out.tool = tool
    if type(action := body.get("action")) is str:
        out.action = action
    if type(outcome := body.get("outcome")) is str:
        out.outcome = outcome
    if "occurred_at" in body:
        out.occurred = as_int(body["occurred_at"])
    if kind in BEGIN_KINDS:
        out.effect = as_text(body.get("effect")) or "external"
        params = body.get("params")
        out.model = as_text(params.get("model")) if type(params) is dict else ""
    if not out.outcome:
        if kind in _COMPLETE:
            out.outcome = "completed" if kind not in _FREE_OUTCOMES or "$erased" not in body else ""
        elif kind.startswith("action."):
            out.outcome = outcome_of(kind, body)
    if type(cost := body.get("cost")) is dict:
        out.tokens_out = as_int(cost.get("tokens_out"))
        out.is_priced = bool(cost.get("price"))
    if kind == "file.changed":
        out.path = as_text(body.get("path"))
    name = _KEY.get(kind)
    if name is not None:
        out.key = as_text(body.get(name))
    if body.keys() <= _UNSAID and kind in KINDS and kind != "state.patched":
        return out  # half of all events have no text
    fields = _SUMMARY.get(kind, ())
    if not has_text and fields and (line := _first_said(fields, kind, body, fetch)):
        out.summary = _summary(body, line)
        return out
    said = {field: text_of(value, fetch) for field, value in _said(kind, body) if value is not None}
    if "output_summary" in said and _repeats(said["output_summary"], said.get("output", "")):
        del said["output_summary"]
    if "error" in said and type(body["error"]) is dict:
        said["error"] = ": ".join(filter(None, failure_of(body["error"])))
    line = "\n".join(filter(None, said.values()))[:TEXT_MAX]
    if has_text:
        out.text = line
    for field in fields:
        if said.get(field):
            line = said[field]
            break
    out.summary = _summary(body, line)
    return out


def _summary(body: dict[str, Value], line: str) -> str:
    return one_line(strip_agent_tags(line) if is_aside(body) else line)


def _first_said(fields: tuple[str, ...], kind: str, body: dict[str, Value], fetch: Fetch) -> str:
    """The text of the first of `fields` that is not empty."""
    unsaid = _unsaid(kind, body)
    for field in fields:
        value = body.get(field)
        if value is None or field in unsaid:
            continue
        if field == "error" and type(value) is dict:
            text = ": ".join(filter(None, failure_of(value)))
        else:
            text = text_of(value, fetch)
        if field == "output_summary" and text and body.get("output") is not None:
            output = text_of(body["output"], fetch)
            if _repeats(text, output):
                return output  # the next field in every kind that has both
        if text:
            return text
    return ""


def _repeats(summary: str, output: str) -> bool:
    """Whether a summary only repeats the beginning of the output. Older versions summarised the output's JSON."""
    is_old = summary.startswith("{") and not output.startswith("{")
    if not summary or not output or is_old:
        return bool(summary and output)
    if output.lstrip()[:1] != summary[:1] and summary != "…":
        return False  # the usual case, decided without splitting a long text into words
    # A summary is short, so the beginning of a long output is enough.
    return " ".join(output[: 8 * len(summary) + 200].split()).startswith(summary.removesuffix("…"))


def _said(kind: str, body: dict[str, Value]) -> list[tuple[str, Value]]:
    fields = _SAID.get(kind)
    if kind == "state.patched":
        return [("delta", agent_ops(body.get("delta")) or None), ("why", body.get("why"))]
    if fields is not None:
        return [(field, body.get(field)) for field in fields]
    unsaid = _unsaid(kind, body)
    return [(field, value) for field, value in body.items() if field not in unsaid]


def _unsaid(kind: str, body: dict[str, Value]) -> frozenset[str]:
    if kind not in KINDS:
        return _UNSAID_ANYWHERE
    return _UNSAID if "$erased" not in body else _UNSAID_ONCE_ERASED


def decision_of(body: dict[str, Value]) -> tuple[str, str, str]:
    """Choice, reason and alternatives, the last as JSON."""
    alternatives = body.get("alternatives")
    listed = [as_text(each) for each in alternatives] if type(alternatives) is list else []
    return as_text(body.get("choice")), as_text(body.get("because")), as_json(listed) or "[]"


def failure_of(error: Value) -> tuple[str, str]:
    """Type and message of a typed error."""
    if type(error) is not dict:
        return "", ""
    return as_text(error.get("type")), as_text(error.get("message"))[:TEXT_MAX]


def text_of(value: Value, fetch: Fetch) -> str:
    """A value as text: texts unchanged, objects as `key: value` lines, payloads as their content."""
    if type(value) is str:
        return value[:TEXT_MAX]
    if type(value) is dict and "$payload" in value:
        value = fetch(value)
        if type(value) is str:
            return value[:TEXT_MAX]
    if (type(value) is dict or type(value) is list) and (said := content_text(value)):
        return said[:TEXT_MAX]
    parts: list[str] = []
    _collect(value, parts, [TEXT_MAX])
    return "\n".join(parts)


def _collect(value: Value, parts: list[str], left: list[int]) -> None:
    """Adds the words in `value` until enough have been collected."""
    if left[0] <= 0 or value is None:
        return
    if type(value) is dict:
        if "$erased" in value:
            return
        text = value.get("text")
        if value.get("type") == "text" and type(text) is str:
            _add(text, parts, left)  # a content block, as the model vendors write messages
            return
        for key, item in value.items():
            if type(item) is dict or type(item) is list:
                _add(f"{key}:", parts, left)
                _collect(item, parts, left)
            elif item is not None:
                _add(f"{key}: {_scalar(item)}", parts, left)
    elif type(value) is list:
        for item in value:
            _collect(item, parts, left)
    else:
        _add(_scalar(value), parts, left)


def _add(text: str, parts: list[str], left: list[int]) -> None:
    parts.append(text[: max(left[0], 0)])
    left[0] -= len(text)


def _scalar(value: Value) -> str:
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    return str(value) if type(value) in (int, float) else ""


def one_line(text: str) -> str:
    """The beginning of a text, in one line."""
    line = text[: SUMMARY_MAX + 1]
    is_one = line.isprintable() and "  " not in line and not line.startswith(" ") and not line.endswith(" ")
    if not is_one:  # blanks other than a single space are not printable
        line = " ".join(text[: 4 * SUMMARY_MAX].split())
    return cut(line, SUMMARY_MAX)


def as_json(value: Value) -> str | None:
    """A value as JSON, or None when it is too long to keep here."""
    data = msgspec.json.encode(value)
    return data.decode() if len(data) <= VALUE_MAX else None
