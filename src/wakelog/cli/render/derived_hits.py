"""Derived decisions and dead ends that contain some words: found where the words are, and derived there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.render.insight import derived
from wakelog.cli.render.sessions import harmless
from wakelog.cli.text import fit
from wakelog.index.search import terms_of
from wakelog.insight.items import InsightItem, InsightKind

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

    session: str
    name: str
    item: InsightItem


def derived_hits(
    ctx: CommandContext, text: str, session: str | None, kind: str, since: int, limit: int
) -> list[DerivedHit]:
    """What is derived in the turns where the words stand; nothing for kinds that are never derived."""
    wanted = KINDS.get(kind, ())
    if not wanted:
        return []
    terms = [words.lower() for words, _ in terms_of(text)]
    places = ctx.store.index.search(text, session=session, since=since, limit=TURNS_MAX * 5)
    turns = list(dict.fromkeys((hit.session, hit.name, hit.turn) for hit in places if hit.turn and hit.in_view))
    found: list[DerivedHit] = []
    for where, name, turn in turns[:TURNS_MAX]:
        insight = derived(ctx.store.resume(where), f"@{turn}", everything=True)
        for item in insight.of(*wanted) if insight else ():
            said = f"{item.quote} {item.reason}".lower()
            if all(term in said for term in terms):
                found.append(DerivedHit(where, name, item))
    return sorted(found, key=lambda hit: -hit.item.score)[:limit]


def derived_hit_lines(ctx: CommandContext, hits: Sequence[DerivedHit]) -> Iterator[str]:
    for hit in hits:
        place = f"{harmless(hit.name) or hit.session}@{hit.item.turn} e{hit.item.seq}"
        marks = f"~ {hit.item.kind.replace('_', ' ')}, derived by rules {hit.item.rules}"
        yield f"{ctx.style(fit(place, ctx.columns // 2), fg='cyan')}  {ctx.style(marks, dim=True)}"
        yield "    " + fit(f'"{" ".join(hit.item.quote.split())}"', ctx.columns - 4)
