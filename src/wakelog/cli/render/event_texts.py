"""The text of each kind of event: a word for what it is about, and one line that says what happened.

Calls and messages are not here: they have lines of their own in events.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import Any

from wakelog.cli.render.values import preview, text_of
from wakelog.cli.text import glyph, name_some
from wakelog.log.reader import Entry
from wakelog.model.document import agent_ops, decision_words
from wakelog.model.short_text import pluralize
from wakelog.model.values import Value
from wakelog.session import Session

Say = Callable[[Session[Any], Entry], str]


def event_text(session: Session[Any], entry: Entry) -> tuple[str, str]:
    """The word and the text of an event. Not yet inert."""
    body = entry.body
    word, say = _KINDS.get(entry.kind, (entry.kind, _fields))
    text = "(pruned)" if not body else "(erased)" if "$erased" in body else say(session, entry)
    why = text_of(body["why"]) if body.get("why") and entry.kind != "decision.made" else ""
    return word, "  ".join(part for part in (text, f"({why})" if why else "") if part)


def label_changes(session: Session[Any], entry: Entry, *, only: Container[str] | None = None) -> list[str]:
    """What a `labels.set` says: `model changed: a → b`, or `model=a` for a new label. With `only`, just the changes of
    these labels."""
    labels = entry.body.get("labels")
    if not isinstance(labels, dict) or (only is not None and not any(name in only for name in labels)):
        return []
    recorded = entry.body.get("before")
    before = {**(recorded if isinstance(recorded, dict) else {}), **session.log.state(entry.seq - 1)["labels"]}
    out = []
    for name, value in labels.items():
        old, new = before.get(name), None if value is None else _short(value)
        word = name.replace("_", " ")
        if old is None or old == value:
            text = f"{name}={new}" if only is None else ""
        else:
            text = f"{word} changed: {_short(old)} {glyph('arrow')} {new if new is not None else 'none'}"
        if text and (only is None or name in only):
            out.append(text)
    return out


_HASH = re.compile(r"[0-9a-f]{40,64}")


def _short(value: Value) -> str:
    """A label's value; a hash is shortened."""
    text = text_of(value)
    return text[:10] if _HASH.fullmatch(text) else text


def _say(template: str) -> Say:
    """Fills the fields of the body into a template; missing fields are empty."""

    class Fields(dict[str, str]):
        def __missing__(self, key: str) -> str:
            return ""

    def say(_: Session[Any], entry: Entry) -> str:
        return template.format_map(Fields({k: text_of(v) for k, v in entry.body.items()})).strip()

    return say


def _fields(_: Session[Any], entry: Entry) -> str:
    return text_of({k: v for k, v in entry.body.items() if k not in ("delta", "why")})[:2000]


def _labels(session: Session[Any], entry: Entry) -> str:
    return ", ".join(label_changes(session, entry))


def _turn_input(session: Session[Any], entry: Entry) -> str:
    input = entry.body.get("input")
    return preview(session, entry, input) if input is not None else "started"


def _turn_outcome(_: Session[Any], entry: Entry) -> str:
    outcome, error = text_of(entry.body.get("outcome", "completed")), entry.body.get("error")
    if isinstance(error, dict):
        return f"{outcome}: {text_of(error.get('type', ''))}: {text_of(error.get('message', ''))}"
    return outcome


def _answered(_: Session[Any], entry: Entry) -> str:
    by = text_of(entry.body.get("by", ""))
    return f"answered{f' by {by}' if by else ''}: {text_of(entry.body.get('answer'))}"


def _decision(_: Session[Any], entry: Entry) -> str:
    return decision_words(entry.body)


def _patched(_: Session[Any], entry: Entry) -> str:
    return ", ".join(f"{op['op']} {op['path']}" for op in agent_ops(entry.delta)[:20])


def _file(_: Session[Any], entry: Entry) -> str:
    return f"{text_of(entry.body.get('change', 'modified'))} {text_of(entry.body.get('path', ''))}"


def _subagent(session: Session[Any], entry: Entry) -> str:
    body = entry.body
    id = text_of(body.get("session", ""))
    name = session.history.name_of(id)
    verb, field = ("started", "task") if entry.kind == "subagent.spawned" else ("returned", "outcome")
    more = text_of(body.get(field) or "")
    return f"{verb} {name.replace(id, id[:12])}" + (f": {more}" if more else "")


def _commit(_: Session[Any], entry: Entry) -> str:
    body = entry.body
    link = f"{_short(body.get('commit', ''))} has work of @{body.get('turn')} ({body.get('known', 'derived')})"
    return f"{link}  {text_of(body.get('subject', ''))}"


def _recalled(_: Session[Any], entry: Entry) -> str:
    shown = entry.body.get("lines")
    lines = ", ".join(map(text_of, shown)) if isinstance(shown, list) else ""
    return f"was shown lines of earlier sessions ({entry.body.get('occasion', 'asked')}): {lines}"


def _imported(_: Session[Any], entry: Entry) -> str:
    ids = entry.body.get("ids")
    count = len(ids) if isinstance(ids, list) else 0
    name = text_of(entry.body.get("source", "")).replace("\\", "/").rpartition("/")[2]
    return f"{pluralize(count, 'record')} of {text_of(entry.body.get('format', ''))} from {name}"


def _erased(_: Session[Any], entry: Entry) -> str:
    erased = entry.body.get("erased")
    if not isinstance(erased, list):
        return ""
    return name_some([f"e{target.get('seq')}" for target in erased], 12, by=" ")


_KINDS: dict[str, tuple[str, Say]] = {
    "session.opened": ("session", _say("opened  {goal}")),
    "session.paused": ("session", _say("paused")),
    "session.resumed": ("session", _say("resumed {host}")),
    "session.closed": ("session", _say("closed {outcome}")),
    "session.reopened": ("session", _say("reopened")),
    "session.archived": ("session", _say("archived")),
    "session.deleted": ("session", _say("deleted")),
    "session.forked": ("session", _say("forked from {parent} at e{at}")),
    "lease.taken": ("lease", _say("taken by {holder}, epoch {epoch}")),
    "lease.released": ("lease", _say("released, epoch {epoch}")),
    "goal.set": ("goal", _say("{goal}")),
    "labels.set": ("labels", _labels),
    "turn.started": ("turn", _turn_input),
    "turn.ended": ("turn", _turn_outcome),
    "input.requested": ("input", _say("asked: {prompt}")),
    "input.answered": ("input", _answered),
    "decision.made": ("decision", _decision),
    "fact.recorded": ("fact", _say("{key} = {value}")),
    "fact.retracted": ("fact", _say("{key} retracted")),
    "dead_end.noted": ("dead end", _say("{tried}: {learned}")),
    "artefact.recorded": ("artefact", _say("{name}  {uri}")),
    "file.changed": ("file", _file),
    "resource.touched": ("resource", _say("{resource} {mode}")),
    "subagent.spawned": ("sub-agent", _subagent),
    "subagent.returned": ("sub-agent", _subagent),
    "context.evicted": ("context", _say("evicted {key} (e{handle})")),
    "context.restored": ("context", _say("restored {key}")),
    "state.patched": ("data", _patched),
    "budget.set": ("budget", _say("limits {limits}")),
    "budget.spent": ("budget", _say("spent")),
    "budget.reached": ("budget", _say("limit reached: {limit}")),
    "trust.endorsed": ("trust", _say("endorsed {targets} by {by}")),
    "step.invalidated": ("trust", _say("invalidated {targets} by {by}")),
    "flag.raised": ("flag", _say("{flag}: {message}")),
    "flag.cleared": ("flag", _say("{flag} cleared")),
    "history.rewound": ("rewind", _say("{mode} back to e{to}")),
    "history.compacted": ("history", _say("compacted e{first}..e{last}")),
    "history.expanded": ("history", _say("reverted the compaction e{compacted}")),
    "history.adopted": ("history", _say("adopted {session} at e{at}")),
    "payload.redacted": ("redaction", _say("e{target} {markers}")),
    "payload.erased": ("erasure", _erased),
    "range.pruned": ("prune", _say("everything up to e{upto}")),
    "checkpoint.named": ("checkpoint", _say("{name} = e{at}")),
    "note.added": ("note", _say("{text}")),
    "gap.noted": ("gap", _say("{missed}")),
    "git_commit.linked": ("commit", _commit),
    "knowledge.recalled": ("recall", _recalled),
    "items.kept": ("items", _say("{format}")),
    "records.imported": ("import", _imported),
}
