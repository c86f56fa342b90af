"""Derived decisions and dead ends that a search found, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wakelog.cli.context import CommandContext
from wakelog.cli.render.results import shape
from wakelog.cli.render.sessions import harmless
from wakelog.cli.text import fit
from wakelog.store.insight_search import DerivedHit

shape(DerivedHit, "session name? item")


def derived_hit_lines(ctx: CommandContext, hits: Sequence[DerivedHit]) -> Iterator[str]:
    for hit in hits:
        place = f"{harmless(hit.name) or hit.session}@{hit.item.turn} e{hit.item.seq}"
        marks = f"~ {hit.item.kind.replace('_', ' ')}, derived by rules {hit.item.rules}"
        yield f"{ctx.style(fit(place, ctx.columns // 2), fg='cyan')}  {ctx.style(marks, dim=True)}"
        yield "    " + fit(f'"{" ".join(hit.item.quote.split())}"', ctx.columns - 4)
