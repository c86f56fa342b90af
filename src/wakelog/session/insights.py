"""Derived insight of a session: which turns are meant, and what it takes to accept an item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakelog.errors import NotFoundError
from wakelog.insight.derivation import make_insight
from wakelog.insight.items import Insight, InsightItem
from wakelog.log import Log
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.runtime.ambient import TrustMark
from wakelog.session.base import Where
from wakelog.timeline.selectors import resolve_range

if TYPE_CHECKING:
    from wakelog.session.session import Session

ACCEPTED = ("decision", "approach_change", "dead_end", "goal")
"""The kinds that can be recorded."""


def insight_of(session: Session[Any], where: Where, *, everything: bool) -> Insight:
    return make_insight(session.log, turns_at(session.log, where), everything=everything)


def turns_at(log: Log, where: Where) -> list[int]:
    """The turns that a place touches; without one, the newest."""
    head = log.head()
    if where is None or where == "@":
        return [head.turn] if head.turn else []
    found = resolve_range(log, f"e{where}" if isinstance(where, int) else where)
    turns = (entry.header.turn for entry in log.entries(after=found.first - 1, upto=found.last))
    return sorted({turn for turn in turns if turn})


def find_item(session: Session[Any], id: str, kind: str) -> InsightItem:
    """A derived item by its id; of several kinds at one event, the first that can be recorded."""
    found = insight_of(session, id.partition(".")[0], everything=True)
    wanted = (kind,) if kind else ACCEPTED
    for name in wanted:
        for item in found.items:
            if item.id == id and item.kind == name:
                return item
    known = ", ".join(f"{item.id} ({item.kind})" for item in found.items if item.kind in ACCEPTED) or "none"
    raise NotFoundError(
        f"nothing that can be accepted is derived at {id} in {session.name or session.id} (it has: {known})",
        kind="insight-not-found",
        hint="wakelog show @N --all lists what is derived",
    )


def accept_item(session: Session[Any], item: InsightItem) -> Seq:
    """Records an item as what it is said to be, with its evidence. It is trusted as far as the event it quotes."""
    entry = session.log.entry(item.seq)
    mark = TrustMark(entry.header.trust, entry.header.source)
    evidence = tuple(dict.fromkeys((item.seq, *([item.reason_seq] if item.reason_seq else []), *item.calls)))
    draft = session._runtime.flow.draft(
        _event(item, evidence), actor="user", mark=mark, derived_from=((item.seq, item.seq),)
    )
    return session._write(draft)


def _event(item: InsightItem, evidence: tuple[Seq, ...]) -> ev.Event:
    why = f"accepted from e{item.seq}, derived by rules {item.rules}"
    if item.kind == "goal":
        return ev.GoalSet(goal=item.quote, why=why)
    if item.kind == "dead_end":
        return ev.DeadEndNoted(tried=item.quote, learned="" if item.reason == item.quote else item.reason, why=why)
    because = "" if item.reason == item.quote else item.reason
    return ev.DecisionMade(choice=item.quote or _change(item), because=because, evidence=evidence, why=why)


def _change(item: InsightItem) -> str:
    """A change of approach that no words announce."""
    new, failed = (*item.tools, "", "")[:2]
    return f"{failed} → {new}" if failed != new else f"{new}, in another way"
