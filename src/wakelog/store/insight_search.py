"""Searches derived decisions and dead ends: finds the turns that contain the words, and derives insight there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from wakelog.errors import WakelogError
from wakelog.index.search import terms_of
from wakelog.insight.items import InsightItem, InsightKind
from wakelog.model.ids import SessionId

if TYPE_CHECKING:
    from wakelog.store import Store

KINDS: dict[str, tuple[InsightKind, ...]] = {
    "decision": ("decision", "approach_change", "answer"),
    "decision.made": ("decision", "approach_change", "answer"),
    "dead_end": ("dead_end",),
    "dead_end.noted": ("dead_end",),
}
"""The requested kind → the derived kinds to search."""
TURNS_MAX = 40
"""How many turns are read at most."""


class DerivedHit(msgspec.Struct, frozen=True):
    """A derived item that contains the words."""

    session: SessionId
    name: str
    item: InsightItem


def find_derived(
    store: Store, words: str, kind: str, session: SessionId | None, since: int | None, limit: int
) -> list[DerivedHit]:
    """Lists the derived items that contain all the words, the most certain first."""
    wanted = KINDS.get(kind, ())
    terms = [term.lower() for term, _ in terms_of(words)]
    if not wanted or not terms:
        return []
    places = store.index.search(words, session=session, since=since, limit=TURNS_MAX * 5)
    turns = list(dict.fromkeys((hit.session, hit.name, hit.turn) for hit in places if hit.turn and hit.in_view))
    hits: list[DerivedHit] = []
    for where, name, turn in turns[:TURNS_MAX]:
        try:
            insight = store.resume(where).insight(f"@{turn}", all=True)
        except WakelogError:
            continue  # skip a damaged session
        for item in insight.of(*wanted):
            text = f"{item.quote} {item.reason} {item.asked}".lower()
            if all(term in text for term in terms):
                hits.append(DerivedHit(SessionId(where), name, item))
    return sorted(hits, key=lambda hit: -hit.item.score)[:limit]
