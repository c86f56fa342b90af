"""The audit of a session: what was done to the record itself, by whom and why.

It lists removals and masked secrets, holds, rewinds, adoptions, changes of trust, people's decisions about calls, gaps,
and changes of the session's status. It does not list what the agent did, nor check the bytes: `Session.verify` does.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from wakelog.errors import CorruptLogError
from wakelog.index.results import EventInfo
from wakelog.log.reader import Entry
from wakelog.maintenance.holds import Hold, hold_of
from wakelog.model.document import HOLD_LABEL
from wakelog.model.ids import Seq, SessionId
from wakelog.model.json_fields import as_text, text_in
from wakelog.model.records import Anchor
from wakelog.model.short_text import pluralize
from wakelog.session import Session
from wakelog.store import Store

PAGE = 500
Concern = Literal["removal", "masking", "hold", "history", "trust", "approval", "life", "gap"]
CONCERNS: dict[str, Concern] = {
    "payload.erased": "removal",
    "range.pruned": "removal",
    "payload.redacted": "masking",
    "labels.set": "hold",
    "history.rewound": "history",
    "history.adopted": "history",
    "history.compacted": "history",
    "history.expanded": "history",
    "session.forked": "history",
    "checkpoint.named": "history",
    "trust.endorsed": "trust",
    "step.invalidated": "trust",
    "action.approved": "approval",
    "action.denied": "approval",
    "action.reconciled": "approval",
    "action.abandoned": "approval",
    "input.answered": "approval",
    "budget.set": "approval",
    "session.opened": "life",
    "session.paused": "life",
    "session.resumed": "life",
    "session.closed": "life",
    "session.reopened": "life",
    "session.archived": "life",
    "lease.taken": "life",
    "records.imported": "life",
    "gap.noted": "gap",
}


class AuditEntry(msgspec.Struct, frozen=True):
    """One thing that was done to the record."""

    seq: Seq
    at: int
    turn: int
    concern: Concern
    kind: str
    actor: str
    by: str
    """The name of the person, if one was given."""
    why: str
    what: str
    """What was done, in words."""
    events: tuple[Seq, ...]
    """The events it was done to, if it names them."""


class Audit(msgspec.Struct, frozen=True):
    """What was done to a session's record. Pass `next` as `after` for the next page; it is empty on the last page."""

    session: SessionId
    name: str
    anchor: Anchor
    hold: Hold | None
    entries: tuple[AuditEntry, ...]
    next: str = ""
    damaged: str = ""
    """Why the state cannot be read; then it is unknown whether there is a hold. Empty if it can."""


def audit_session(store: Store, session: Session[Any], *, after: str = "", limit: int = 200) -> Audit:
    """Reads what was done to a session's record, oldest first, including rewound parts."""
    page = store.index.events(session.id, kinds=tuple(CONCERNS), rewound=True, after=after, limit=limit)
    entries = [_read(session, row) for row in page]
    hold, damaged = None, ""
    try:
        hold = hold_of(session)
    except CorruptLogError as exc:
        damaged = exc.message
    return Audit(
        session=session.id,
        name=session.name,
        anchor=session.anchor(),
        hold=hold,
        entries=tuple(entry for entry in entries if entry is not None),
        next=page.next,
        damaged=damaged,
    )


def whole_audit(store: Store, session: Session[Any]) -> Audit:
    """Reads all pages into one; of a damaged session, all that can be read, also after the damage."""
    page = audit_session(store, session, limit=PAGE)
    entries = page.entries
    while page.next:
        page = audit_session(store, session, after=page.next, limit=PAGE)
        entries += page.entries
    if page.damaged:
        readable = (e for e in session.log.entries(on_hole=lambda _: None) if e.kind in CONCERNS)
        entries = tuple(entry for entry in map(_entry, readable) if entry is not None)
    return msgspec.structs.replace(page, entries=entries)


def _read(session: Session[Any], row: EventInfo) -> AuditEntry | None:
    """Reads an event. If its bytes are damaged, returns what the index knows of it."""
    try:
        return _entry(session.log.entry(row.seq))
    except CorruptLogError as exc:
        what = f"it cannot be read: {exc.message}"
        return AuditEntry(row.seq, row.at, row.turn, CONCERNS[row.kind], row.kind, row.actor, "", "", what, ())


def _entry(entry: Entry) -> AuditEntry | None:
    """Returns None for labels that are not about a hold."""
    body, header = entry.body, entry.header
    if entry.kind == "labels.set" and HOLD_LABEL not in (body.get("labels") or {}):
        return None
    what, events = _what(entry.kind, body)
    return AuditEntry(
        seq=entry.seq,
        at=header.at,
        turn=header.turn,
        concern=CONCERNS[entry.kind],
        kind=entry.kind,
        actor=header.actor,
        by=text_in(body, "by"),
        why=text_in(body, "why"),
        what=what,
        events=events,
    )


def _what(kind: str, body: dict[str, Any]) -> tuple[str, tuple[Seq, ...]]:
    if kind == "payload.erased":
        seqs = tuple(row["seq"] for row in body.get("erased") or () if isinstance(row, dict) and "seq" in row)
        return f"content of {pluralize(len(seqs), 'event')} erased", seqs
    if kind == "range.pruned":
        return f"bodies up to e{body.get('upto')} pruned", ()
    if kind == "payload.redacted":
        return f"secrets masked before storing: {', '.join(body.get('markers') or ())}", (int(body.get("target") or 0),)
    if kind == "labels.set":
        reason = (body.get("labels") or {}).get(HOLD_LABEL)
        return ("hold lifted" if reason is None else f"hold placed: {reason}"), ()
    if kind == "history.rewound":
        return f"{body.get('mode') or 'rewind'} to e{body.get('to')}", ()
    if kind == "history.compacted":
        return f"e{body.get('first')} to e{body.get('last')} summed up in view", ()
    if kind == "history.expanded":
        return f"the summary of e{body.get('compacted')} taken back", ()
    targets = tuple(body.get("targets") or ())
    words = next((as_text(body.get(name)) for name in _NAMED if as_text(body.get(name))), "")
    return words or (pluralize(len(targets), "event") if targets else ""), targets


_NAMED = ("name", "session", "action", "request", "missed", "outcome", "holder", "source", "parent", "host")
