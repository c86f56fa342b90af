"""Derived decisions and dead ends that contain some words: found where the words are, and derived there."""

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
    "decision": ("decision", "approach_change"),
    "decision.made": ("decision", "approach_change"),
    "dead_end": ("dead_end",),
    "dead_end.noted": ("dead_end",),
}
"""What is asked for, and which derived kinds answer it."""
TURNS_MAX = 40
"""The words of so many turns are read."""


class DerivedHit(msgspec.Struct, frozen=True):
    """A derived item that contains the words."""

    session: SessionId
    name: str
    item: InsightItem


def find_derived(
    store: Store, words: str, kind: str, session: SessionId | None, since: int | None, limit: int
) -> list[DerivedHit]:
    """What is derived in the turns where the words stand, the surest first."""
    wanted = KINDS.get(kind, ())
    terms = [term.lower() for term, _ in terms_of(words)]
    if not wanted or not terms:
        return []
    places = store.index.search(words, session=session, since=since, limit=TURNS_MAX * 5)
    turns = list(dict.fromkeys((hit.session, hit.name, hit.turn) for hit in places if hit.turn and hit.in_view))
    found: list[DerivedHit] = []
    for where, name, turn in turns[:TURNS_MAX]:
        try:
            insight = store.resume(where).insight(f"@{turn}", all=True)
        except WakelogError:
            continue  # a damaged session is found by its other words
        for item in insight.of(*wanted):
            said = f"{item.quote} {item.reason}".lower()
            if all(term in said for term in terms):
                found.append(DerivedHit(SessionId(where), name, item))
    return sorted(found, key=lambda hit: -hit.item.score)[:limit]
