"""Derives insight for a session, caches it in the store's index, and records accepted items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.errors import NotFoundError, WakelogError
from wakelog.index.finding_rows import FindingRow, load_findings, save_findings
from wakelog.insight.blocks import RULES_VERSION, Finding, TextSpan
from wakelog.insight.items import InsightItem
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq, SessionId
from wakelog.model.records import EventDraft
from wakelog.runtime.ambient import TrustMark
from wakelog.session.base import Where
from wakelog.timeline.points import walk_back
from wakelog.timeline.selectors import resolve_range

if TYPE_CHECKING:
    from wakelog.index.index import Index
    from wakelog.session.session import Session

_NOWHERE = TextSpan(0, 0, 0, 0)
ACCEPTED = ("decision", "answer", "approach_change", "dead_end", "goal")
"""The kinds of items that can be recorded."""


class CachedFindings:
    """Caches findings in the index of a session's store, by version of the rules."""

    def __init__(self, index: Index, session: SessionId) -> None:
        self._index = index
        self._session = session

    def load(self, turn: int, attempt: int) -> list[Finding] | None:
        rows = load_findings(self._index, self._session, turn, attempt, RULES_VERSION)
        return None if rows is None else [_from_row(row) for row in rows]

    def save(self, turn: int, attempt: int, findings: list[Finding]) -> None:
        save_findings(self._index, self._session, turn, attempt, RULES_VERSION, [_as_row(f) for f in findings])


def _as_row(finding: Finding) -> FindingRow:
    span, reason = finding.span, finding.reason or _NOWHERE
    places = (*msgspec.structs.astuple(span), *msgspec.structs.astuple(reason))
    return (finding.kind, *places, finding.score, finding.detail, msgspec.json.encode(finding.calls).decode())


def _from_row(row: FindingRow) -> Finding:
    reason = TextSpan(*row[5:9])
    calls = msgspec.json.decode(row[11], type=tuple[int, ...])
    return Finding(row[0], TextSpan(*row[1:5]), None if reason == _NOWHERE else reason, row[9], calls, row[10])


def cached_findings(session: Session[Any]) -> CachedFindings | None:
    """Returns the cache; None if the session has no store, or its index cannot be opened."""
    try:
        return CachedFindings(session.store.index, session.id) if session.store is not None else None
    except WakelogError:
        return None


def turns_at(log: Log, where: Where) -> list[int]:
    """Returns the turns of a place; by default, the newest turn."""
    if where is None or where == "@":
        newest = log.head().turn
        return [newest] if newest else []
    extent = resolve_range(log, f"e{where}" if isinstance(where, int) else where)
    turns = (entry.header.turn for entry in log.entries(after=extent.first - 1, upto=extent.last))
    return sorted({turn for turn in turns if turn})


def find_item(session: Session[Any], id: str, kind: str) -> InsightItem:
    """Finds a derived item by id. If an event has items of several kinds, returns the first that can be recorded."""
    insight = session.insight(id.partition(".")[0], all=True)
    wanted = (kind,) if kind else ACCEPTED
    for name in wanted:
        for item in insight.items:
            if item.id == id and item.kind == name:
                return item
    known = ", ".join(f"{item.id} ({item.kind})" for item in insight.items if item.kind in ACCEPTED) or "none"
    raise NotFoundError(
        f"nothing that can be accepted is derived at {id} in {session} (it has: {known})",
        kind="insight-not-found",
        hint="wakelog show @N --all lists what is derived",
    )


def accept_item(session: Session[Any], item: InsightItem) -> Seq:
    """Records a derived item with its evidence. It is trusted as far as the event that it quotes."""
    entry = session.log.entry(item.seq)
    mark = TrustMark(entry.header.trust, entry.header.source)
    evidence = tuple(dict.fromkeys((item.seq, *([item.reason_seq] if item.reason_seq else []), *item.calls)))
    draft = session._runtime.flow.draft(
        _event(item, evidence), actor="user", mark=mark, derived_from=((item.seq, item.seq),)
    )
    return record_even_if_ended(session, draft, f"e{item.seq} was accepted")


def record_even_if_ended(session: Session[Any], draft: EventDraft, why: str) -> Seq:
    """Records an event even in an ended session: one commit reopens it for the event and closes it again."""
    if session.status not in ("closed", "archived"):
        return session._record(draft)
    ended = next(entry for entry in walk_back(session.log) if entry.kind == "session.closed")
    after: list[ev.Event] = [ev.SessionClosed(outcome=str(ended.body.get("outcome", "completed")), why=why)]
    if session.status == "archived":
        after.append(ev.SessionArchived(why=why))
    reopened, *closed = (EventDraft(each, actor="user") for each in (ev.SessionReopened(why=why), *after))
    return session.log.record(reopened, draft, *closed, guard=session._runtime.guard) + 1


def _event(item: InsightItem, evidence: tuple[Seq, ...]) -> ev.Event:
    why = f"accepted from e{item.seq}, derived by rules {item.rules}"
    if item.kind == "goal":
        return ev.GoalSet(goal=item.quote, why=why)
    if item.kind == "dead_end":
        return ev.DeadEndNoted(
            tried=item.quote or item.note, learned="" if item.reason == item.quote else item.reason, why=why
        )
    if item.kind == "answer":
        choice = f"{item.asked} {item.quote}"
        return ev.DecisionMade(choice=choice, alternatives=item.offered, evidence=evidence, why=why)
    because = "" if item.reason == item.quote else item.reason
    return ev.DecisionMade(choice=item.quote or item.note, because=because, evidence=evidence, why=why)
