"""`wakelog context`, `compact`, `expand` and `brief`: what the model saw or would see, and the handoff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import place_argument, why_option
from wakelog.cli.render.results import SessionResult, plain
from wakelog.cli.render.results import shape as shape_of
from wakelog.cli.render.sessions import handle, identity, label, title
from wakelog.cli.render.table import Cell, Row, lay_out, say_table
from wakelog.cli.render.values import text_of
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import (
    clock,
    count,
    fit,
    glyph,
    inert,
    inert_line,
    iso,
    join_facts,
    place_of_turn,
    trust_mark,
    width,
)
from wakelog.context.brief import DEFAULT_BUDGET
from wakelog.context.compaction import Summary
from wakelog.context.handles import Evicted
from wakelog.context.items import Item
from wakelog.context.provider_formats import Shape
from wakelog.context.recorded_window import RecordedWindow, WindowChange
from wakelog.context.window_look import WindowLook
from wakelog.session import Session

_MAX_TEXT = 500
_MAX_ITEMS = 200
_COLUMNS = " | key | turn -3 | who 8 | > tokens | what 16 | trust 8"
SHAPES = ("openai", "responses", "anthropic")


shape_of(
    WindowLook,
    "at=seen.at call recorded=seen.recorded budget tokens estimate exposure=trust source? known? items"
    " evicted=seen.evicted moved system? messages",
    call=lambda look: (
        {"seq": look.seen.call, "model": look.seen.model or None, "context_hash": look.seen.context_hash or None}
        if look.seen.call
        else None
    ),
    estimate=lambda look: True,
    items=lambda look: [
        {**plain(item), "age": max(0, look.turn - item.turn) if item.turn else None} for item in look.seen.items
    ],
)
shape_of(
    Item,
    "key seq turn? age=turn kind role name? status? tokens trust source? text events",
    text=lambda item: item.text[:_MAX_TEXT],
)
shape_of(Evicted, "key handle tokens? what")
shape_of(
    WindowChange,
    "before? entered left",
    entered=lambda moved: [item.key for item in moved.entered],
    left=lambda moved: [{"key": left.item.key, "tokens": left.item.tokens, "how": left.how} for left in moved.left],
)


def say_look(ctx: CommandContext, session: Session[Any], look: WindowLook) -> None:
    """Prints a window: its headline, its items in order, and what was evicted."""
    window = look.seen
    ctx.say(f"  {fit(_headline(window), ctx.columns - 2)}")
    of = f" of {count(look.budget)}" if look.budget else ""
    facts = join_facts([f"{len(window.items)} items", f"{count(look.tokens)}{of} tokens (estimate)"])
    ctx.say(f"  {facts}")
    if look.trust != "trusted":
        words = f"{glyph('warn')} exposure: {look.trust}" + (f", {look.source}" if look.source else "")
        ctx.say(f"  {ctx.style(fit(words, ctx.columns - 2), fg='yellow')}")
    entered = {item.key for item in look.moved.entered} if look.moved else set()
    rows: list[Row] = []
    if look.known:
        parts = [line[3:] for line in look.known.splitlines() if line.startswith("## ")]
        tokens = look.tokens - sum(item.tokens for item in window.items)
        rows.append(("", "", "", "known", count(tokens), Cell(", ".join(parts).lower(), {"dim": True}), ""))
    rows += [_row(item, "+" if item.key in entered else "") for item in window.items[-_MAX_ITEMS:]]
    if look.moved:
        rows += [_row(left.item, glyph("minus"), left.how) for left in look.moved.left]
    if len(window.items) > _MAX_ITEMS:
        ctx.remark(f"  {len(window.items) - _MAX_ITEMS:,} older items (--json shows all)")
    say_table(ctx, _COLUMNS, rows)
    if look.moved:
        since = f"since the model call at e{look.moved.before}" if look.moved.before else "since the beginning"
        ctx.remark(f"  {since}: {len(look.moved.entered)} entered, {len(look.moved.left)} left")
    _say_evicted(ctx, session, window)


def _headline(window: RecordedWindow) -> str:
    if not window.call:
        return f"what a model would be shown at e{window.at}"
    who = fit(window.model, 40) or "the model"
    if window.recorded:
        return f"what {who} was shown at e{window.call}, as recorded"
    return f"what {who} would have been offered at e{window.call}; what it was shown is not recorded"


def _row(item: Item, sign: str, how: str = "") -> Row:
    who = item.name if item.kind == "call" else item.kind if item.kind in ("summary", "gone") else item.role
    text = inert_line(item.text)
    if item.kind == "call":
        input, answer = item.asked_and_said
        text = f"{input} {glyph('arrow')} {answer}"
    style = {"fg": "green"} if sign == "+" else {"fg": "red"} if sign else {}
    return (
        Cell(sign, style),
        Cell(item.key, {"fg": "cyan"}),
        place_of_turn(item.turn) or glyph("dash"),
        who,
        count(item.tokens),
        Cell(f"({how}) {text[:400]}" if how else text[:400], {"dim": bool(how)}),
        Cell(trust_mark(item.trust, item.source), {"fg": "yellow"}),
    )


def _say_evicted(ctx: CommandContext, session: Session[Any], window: RecordedWindow) -> None:
    if not window.evicted:
        return
    ctx.say(f"not in it ({len(window.evicted)})")
    for item in window.evicted[-12:]:
        key, size = item.key, f"{count(item.tokens)} tokens" if item.tokens else ""
        if item.what == "compaction":
            key = f"e{item.first}..e{item.last}"
            size = f"summarised in e{item.handle} (wakelog expand {handle(session)}@e{item.handle})"
        key = fit(key, 30)
        ctx.say(f"  {ctx.style(key, fg='cyan')}  {fit(size, ctx.columns - width(key) - 4)}".rstrip())
    if len(window.evicted) > 12:
        ctx.remark(f"  {len(window.evicted) - 12} more (wakelog state /evicted_keys -s {handle(session)})")


@click.command("context")
@place_argument("where", "[SEL]")
@click.option("--diff", is_flag=True, help="Show what entered and left since the model call before.")
@click.option("--budget", type=click.IntRange(1), metavar="N", help="Cut it to N tokens.")
@click.option("--shape", type=click.Choice(SHAPES), help="Print the messages as this provider takes them.")
@common
def context_command(ctx: CommandContext, where: str, diff: bool, budget: int | None, shape: Shape | None) -> None:
    """Show what was in the model's window, item by item, with tokens (an estimate), trust, and what had left it.

    At a turn or event with a model call, this is what the call recorded. Elsewhere, and without SEL, it is what a model
    would be shown there. Nothing is written.

    Examples:
      wakelog context fix-bug@9 --diff
      wakelog context fix-bug --budget 400
      wakelog context fix-bug@9 --shape anthropic
    """
    place = ctx.place(where)
    session, spot = place.session, place.text
    if spot:
        _ = place.events  # raises if there are none
    look = session.context.seen(spot or None, budget=budget, shape=shape, moved=diff)
    if shape and ctx.is_for_people:
        ctx.print_json({"system": look.system, "messages": look.messages} if look.system else look.messages)
        return

    def human() -> None:
        ctx.say(title(ctx, session) + (f"  {spot}" if spot else ""))
        say_look(ctx, session, look)

    records = ({"session": session.id, **item} for item in plain(look)["items"])
    ctx.answer("context", SessionResult(session, look), human, records=records)
    name = handle(session)
    more = [] if diff else [f"wakelog context {where or name} --diff"]
    ctx.suggest(*more, f"wakelog context {where or name} --shape openai", f"wakelog brief {name}")


@click.command("compact")
@place_argument("where", "[RANGE]")
@click.option("-m", "--message", "summary", default="", metavar="TEXT", help="Replace the range with this summary.")
@click.option("-F", "--file", type=click.File(), help="Read the summary from a file; - is stdin.")
@common
def compact_command(ctx: CommandContext, where: str, summary: str, file: IO[str] | None) -> None:
    """Replace a range of the conversation with a summary, in the view only: the log keeps everything, and `wakelog
    expand` reverts it. Facts, decisions and other durable state do not change. Without a summary, list the
    compactions.

    Examples:
      wakelog compact fix-bug@1..@8 -m "The lifetime was 300 s; now it is a week."
      wakelog compact fix-bug
    """
    if summary and file:
        raise click.UsageError("give the summary with -m or with -F, not both")
    place = ctx.place(where)
    session = place.session
    text = file.read() if file else summary
    if not text.strip():
        if place.text:
            raise click.UsageError("a compaction needs a summary: -m TEXT or -F FILE")
        _list(ctx, session)
        return
    if not place.text:
        raise click.UsageError("name the range: fix-bug@1..@8")
    span = place.span
    seq = session.context.compact(span.first, span.last, text)
    [made] = [c for c in session.context.compactions() if c.seq == seq]
    data = {**identity(session), **_plain(made)}
    undo = f"wakelog expand {handle(session)}@e{seq}"
    line = f"{label(session)}: e{seq} replaces e{span.first}..e{span.last} (to revert: {undo})"
    ctx.answer("compact", data, line)


def _list(ctx: CommandContext, session: Session[Any]) -> None:
    summaries = session.context.compactions()

    def human() -> None:
        rows = [
            (
                Cell(f"e{c.seq}", {"fg": "cyan"}),
                f"e{c.first}..e{c.last}" + (f" (inside e{c.covered_by})" if c.covered_by else ""),
                clock(c.at, utc=ctx.utc),
                (f"{glyph('warn')} {c.source or c.trust}: " if c.trust != "trusted" else "") + text_of(c.summary)[:400],
            )
            for c in summaries
        ]
        say_table(ctx, "event | replaces | when -2 | summary 20", rows, none="nothing is compacted")

    data = {**identity(session), "compactions": [_plain(c) for c in summaries]}
    ctx.answer("compact", data, human)


def _plain(summary: Summary) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(summary)
    fields["timestamp"] = iso(fields.pop("at"))
    return {**fields, "source": summary.source or None, "covered_by": summary.covered_by or None}


@click.command("expand")
@click.argument("where", metavar="SEL", shell_complete=complete_selector)
@click.option("--dry-run", is_flag=True, help="Show what would be in the view again, and write nothing.")
@why_option
@common
def expand_command(ctx: CommandContext, where: str, dry_run: bool, why: str) -> None:
    """Revert a compaction, so that the events behind its summary are in the view again.

    Examples:
      wakelog expand fix-bug@e113 --dry-run
      wakelog expand -s fix-bug e113
    """
    place = ctx.place(where)
    session = place.session
    if not place.text:
        raise click.UsageError("name the compaction, as wakelog compact lists them: fix-bug@e113")
    seq = place.span.last
    items = session.context.replaced(seq)
    did = 0 if dry_run else session.context.expand(seq, why=why)
    tokens = sum(i.tokens for i in items)
    data = {
        **identity(session),
        "compaction": seq,
        "seq": did or None,
        "items": [{"key": i.key, "turn": i.turn or None, "kind": i.kind, "tokens": i.tokens} for i in items],
        "tokens": tokens,
    }
    verb = "would be in view again" if dry_run else "is in view again"
    line = f"{label(session)}: what e{seq} replaced {verb}: {len(items)} items, about {tokens:,} tokens"
    ctx.answer("expand", data, [line, *(_replaced_lines(ctx, items) if dry_run else ())])


def _replaced_lines(ctx: CommandContext, items: Sequence[Item]) -> Iterator[str]:
    columns = "key | turn | what 20"
    rows = [(Cell(i.key, {"fg": "cyan"}), place_of_turn(i.turn) or glyph("dash"), i.text[:400]) for i in items]
    yield from lay_out(ctx, columns, rows)
    yield "This was a dry run: nothing was written."


@click.command("brief")
@place_argument("where", "[SESSION]")
@click.option(
    "--budget",
    type=click.IntRange(1),
    default=DEFAULT_BUDGET,
    show_default=True,
    metavar="N",
    help="Use at most N tokens.",
)
@click.option("--past", is_flag=True, help="Add what earlier sessions knew about its goal and files.")
@common
def brief_command(ctx: CommandContext, where: str, budget: int, past: bool) -> None:
    """Write the handoff for the next run: goal, open calls and what to do about them, decisions, facts, dead ends,
    files.

    The output is Markdown, for a person or a model. What does not fit is counted, with the command that shows it.
    Untrusted text is fenced and names its source. Tokens are an estimate of four bytes each.

    Examples:
      wakelog brief fix-bug
      wakelog brief fix-bug --budget 300
      wakelog brief fix-bug@4
      wakelog brief fix-bug --past
    """
    place = ctx.place(where)
    brief = place.session.brief(budget, at=place.seq)
    data = {**msgspec.to_builtins(brief), "name": brief.name or None, "estimate": True}
    known = ctx.store.known.past(place.session) if past else None
    data |= {"past": plain(known)} if known is not None else {}

    def human() -> None:
        ctx.say_all(inert(brief.text).splitlines())
        if known is not None and known.lines:
            ctx.say()
            ctx.say_all(inert(ctx.store.known.as_markdown(known)).splitlines())

    ctx.answer("brief", data, human)
