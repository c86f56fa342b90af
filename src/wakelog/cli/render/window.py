"""The model's window, for people and programs."""

from __future__ import annotations

from typing import Any

import msgspec

from wakelog.cli.context import Context
from wakelog.cli.render.sessions import handle
from wakelog.cli.render.table import Cell, Column, Row, say_table
from wakelog.cli.text import count, fit, glyph, inert, width
from wakelog.context.handles import Evicted
from wakelog.context.items import Item
from wakelog.context.quotes import unfenced
from wakelog.context.recorded_window import Moved, Seen
from wakelog.session import Session

_TEXT = 500
_SHOWN = 200
_COLUMNS = (
    Column(),
    Column("key"),
    Column("turn", drop=3),
    Column("who", least=8),
    Column("tokens", right=True),
    Column("what", least=16),
    Column("trust", least=8),
)


class Look(msgspec.Struct, frozen=True):
    """One look at a window."""

    seen: Seen
    turn: int
    known: str
    tokens: int
    budget: int | None
    trust: str
    source: str
    moved: Moved | None
    messages: list[dict[str, Any]] | None
    system: str


def plain_look(session: Session[Any], look: Look) -> dict[str, Any]:
    """A window as JSON."""
    seen = look.seen
    call = {"seq": seen.call, "model": seen.model or None, "context_hash": seen.context_hash or None}
    return {
        "session": session.id,
        "name": session.name or None,
        "at": seen.at,
        "call": call if seen.call else None,
        "recorded": seen.recorded,
        "budget": look.budget,
        "tokens": look.tokens,
        "estimate": True,
        "exposure": look.trust,
        "source": look.source or None,
        "known": look.known or None,
        "items": [_plain_item(look, item) for item in seen.items],
        "evicted": [_plain_evicted(each) for each in seen.evicted],
        "moved": _plain_moved(look.moved) if look.moved else None,
        "system": look.system or None,
        "messages": look.messages,
    }


def _plain_item(look: Look, item: Item) -> dict[str, Any]:
    return {
        "key": item.key,
        "seq": item.seq,
        "turn": item.turn or None,
        "age": max(0, look.turn - item.turn) if item.turn else None,
        "kind": item.kind,
        "role": item.role,
        "name": item.name or None,
        "status": item.status or None,
        "tokens": item.tokens,
        "trust": item.trust,
        "source": item.source or None,
        "text": item.text[:_TEXT],
        "events": list(item.events),
    }


def _plain_evicted(left: Evicted) -> dict[str, Any]:
    return {"key": left.key, "handle": left.handle, "tokens": left.tokens or None, "what": left.what}


def _plain_moved(moved: Moved) -> dict[str, Any]:
    return {
        "before": moved.before or None,
        "entered": [item.key for item in moved.entered],
        "left": [{"key": left.item.key, "tokens": left.item.tokens, "how": left.how} for left in moved.left],
    }


def say_look(ctx: Context, session: Session[Any], look: Look) -> None:
    """Says a window: what it is, its items in order, and what is not in it."""
    seen = look.seen
    ctx.say(f"  {fit(_what(seen), ctx.columns - 2)}")
    of = f" of {count(look.budget)}" if look.budget else ""
    facts = f" {glyph('dot')} ".join([f"{len(seen.items)} items", f"{count(look.tokens)}{of} tokens (estimate)"])
    ctx.say(f"  {facts}")
    if look.trust != "trusted":
        words = f"{glyph('warn')} exposure: {look.trust}" + (f", {look.source}" if look.source else "")
        ctx.say(f"  {ctx.style(fit(words, ctx.columns - 2), fg='yellow')}")
    entered = {item.key for item in look.moved.entered} if look.moved else set()
    rows: list[Row] = []
    if look.known:
        parts = [line[3:] for line in look.known.splitlines() if line.startswith("## ")]
        taken = look.tokens - sum(item.tokens for item in seen.items)
        rows.append(("", "", "", "known", count(taken), Cell(", ".join(parts).lower(), {"dim": True}), ""))
    rows += [_row(item, "+" if item.key in entered else "") for item in seen.items[-_SHOWN:]]
    if look.moved:
        rows += [_row(left.item, glyph("minus"), left.how) for left in look.moved.left]
    if len(seen.items) > _SHOWN:
        ctx.say(ctx.style(f"  {len(seen.items) - _SHOWN:,} older items (--json shows all)", dim=True))
    say_table(ctx, _COLUMNS, rows)
    if look.moved:
        since = f"since the model call at e{look.moved.before}" if look.moved.before else "since the beginning"
        ctx.say(ctx.style(f"  {since}: {len(look.moved.entered)} entered, {len(look.moved.left)} left", dim=True))
    _say_evicted(ctx, session, seen)


def _what(seen: Seen) -> str:
    if not seen.call:
        return f"what a model would be shown at e{seen.at}"
    who = fit(seen.model, 40) or "the model"
    if seen.recorded:
        return f"what {who} was shown at e{seen.call}, as recorded"
    return f"what {who} would have been offered at e{seen.call}; what it was shown is not recorded"


def _row(item: Item, sign: str, how: str = "") -> Row:
    who = item.name if item.kind == "call" else item.kind if item.kind in ("summary", "gone") else item.role
    text = inert(item.text, lines=False)
    if item.kind == "call":
        given, _, answer = item.text.partition("\n")
        text = f"{given.removeprefix(item.name).strip()} {glyph('arrow')} {unfenced(answer)}"
    style = {"fg": "green"} if sign == "+" else {"fg": "red"} if sign else {}
    mark = f"{glyph('warn')} {item.source or item.trust}" if item.trust != "trusted" else ""
    return (
        Cell(sign, style),
        Cell(item.key, {"fg": "cyan"}),
        f"@{item.turn}" if item.turn else glyph("dash"),
        who,
        count(item.tokens),
        Cell(f"({how}) {text[:400]}" if how else text[:400], {"dim": bool(how)}),
        Cell(mark, {"fg": "yellow"}),
    )


def _say_evicted(ctx: Context, session: Session[Any], seen: Seen) -> None:
    if not seen.evicted:
        return
    ctx.say(f"not in it ({len(seen.evicted)})")
    for each in seen.evicted[-12:]:
        size = f"{count(each.tokens)} tokens" if each.tokens else ""
        key = each.key
        if each.what == "compaction":
            key = f"e{each.first}..e{each.last}"
            size = f"summarised in e{each.handle} (wakelog expand {handle(session)}@e{each.handle})"
        key = fit(key, 30)
        ctx.say(f"  {ctx.style(key, fg='cyan')}  {fit(size, ctx.columns - width(key) - 4)}".rstrip())
    if len(seen.evicted) > 12:
        rest = f"{len(seen.evicted) - 12} more (wakelog state /evicted_keys -s {handle(session)})"
        ctx.say(ctx.style(f"  {rest}", dim=True))
