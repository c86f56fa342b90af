"""Costs, and tables of totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from wakelog.cli.context import CommandContext
from wakelog.cli.render.table import Cell, Column, Row, say_table
from wakelog.cli.text import count, duration, money
from wakelog.model.values import Value

_NO_NAME = {"tool": "(no tool)", "model": "(no model)", "agent": "(no agent)"}


class Spent(msgspec.Struct):
    """Totals of what was reported; zero means that nothing was."""

    tokens_in: int = 0
    tokens_out: int = 0
    usd_micros: int = 0
    duration_us: int = 0

    def add(self, cost: Value) -> None:
        if isinstance(cost, dict):
            self.tokens_in += cost.get("tokens_in", 0)
            self.tokens_out += cost.get("tokens_out", 0)
            self.usd_micros += cost.get("usd_micros", 0)
            self.duration_us += cost.get("duration_us", 0)


def cost_words(cost: Value) -> list[str]:
    """A cost in words; what was not reported is left out."""
    if not isinstance(cost, dict):
        return []
    words = []
    if us := cost.get("duration_us"):
        words.append(duration(us))
    if tokens := cost.get("tokens_out"):
        words.append(f"{count(tokens)} out")
    if usd := cost.get("usd_micros"):
        words.append(money(usd))
    return words


def usage_words(cost: Value) -> list[str]:
    """A cost in words, with the tokens that went in and how many came from a cache."""
    if not isinstance(cost, dict) or not cost.get("tokens_in"):
        return cost_words(cost)
    parts = [
        f"{count(cost[name])} {word}"
        for name, word in (("cache_read_tokens", "from cache"), ("cache_write_tokens", "to cache"))
        if cost.get(name)
    ]
    inside = f" ({', '.join(parts)})" if parts else ""
    thought = f" ({count(cost['reasoning_tokens'])} thinking)" if cost.get("reasoning_tokens") else ""
    words = [word + thought if word.endswith(" out") else word for word in cost_words(cost)]
    place = 1 if cost.get("duration_us") else 0
    return [*words[:place], f"{count(cost['tokens_in'])} in{inside}", *words[place:]]


def plain_cost(cost: Value) -> dict[str, Any] | None:
    """A cost as JSON; what was not reported is null, never 0."""
    if not isinstance(cost, dict) or not any(cost.values()):
        return None
    return {
        "tokens_in": cost.get("tokens_in") or None,
        "tokens_out": cost.get("tokens_out") or None,
        "duration_us": cost.get("duration_us") or None,
        "money": plain_money(cost.get("usd_micros", 0)),
    }


def plain_money(usd_micros: int, *, estimate: bool = True) -> dict[str, Any] | None:
    """An amount as JSON. Amounts spent are estimates: they were reported, not billed."""
    if not usd_micros:
        return None
    amount = f"{usd_micros // 1_000_000}.{usd_micros % 1_000_000:06d}"
    return {"amount": amount, "currency": "USD", "estimate": estimate}


def group_namer(ctx: CommandContext, by: str) -> Callable[[str], str]:
    """A function that names a group of totals; sessions get their names."""
    names: dict[str, str] = {}
    if by in ("session", "turn", "phase"):
        names = {head.session: str(head) for head in ctx.store.sessions()}

    def name(key: str) -> str:
        if by in ("turn", "phase") and "@" in key:
            session, _, rest = key.rpartition("@")
            turn, _, phase = rest.partition(" ")
            place = f"{names.get(session, session)}{f'@{turn}' if turn != '0' else ' (between turns)'}"
            return f"{place} {phase}" if phase else place
        return names.get(key, key) or _NO_NAME.get(by, "(none)")

    return name


def say_sums(
    ctx: CommandContext,
    columns: str | Sequence[Column],
    found: Any,
    cells: Callable[[Any], Sequence[str]],
    limit: int,
    note: str = "",
) -> None:
    """Prints at most `limit` rows (the last ones for days), then the total, `note`, and how many rows are missing."""
    shown = found.rows[-limit:] if found.by == "day" and limit else found.rows[:limit] if limit else found.rows
    rows: list[Row] = [cells(row) for row in shown]
    if len(found.rows) > 1:
        rows.append([Cell(text, {"bold": True}) for text in ("all", *cells(found.total)[1:])])
    say_table(ctx, columns, rows)
    more = f"{len(found.rows) - len(shown)} more are in the sum; -n 0 shows all" if len(shown) < len(found.rows) else ""
    for line in filter(None, (note, more)):
        ctx.say_all(ctx.wrapped(line, "  "))
