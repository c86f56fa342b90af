"""`wakelog compact` and `wakelog expand`: a summary in place of a part of the conversation, and the way back."""

from __future__ import annotations

from typing import IO, Any

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.render.places import place, select
from wakelog.cli.render.sessions import handle
from wakelog.cli.render.table import Cell, Column, say_table
from wakelog.cli.render.values import text_of
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import clock, glyph, inert, iso
from wakelog.context.compaction import Summary
from wakelog.session import Session


@click.command("compact")
@click.argument("where", metavar="[RANGE]", required=False, default="", shell_complete=complete_selector)
@click.option("-m", "--message", "summary", default="", metavar="TEXT", help="The summary that stands for the range.")
@click.option("-F", "--file", "file", type=click.File(), help="Read the summary from a file; - is stdin.")
@common
def compact_command(ctx: Context, where: str, summary: str, file: IO[str] | None) -> None:
    """Lets a summary stand for a range of the conversation, in view only: the log keeps everything, and `expand` takes
    it back. Facts, decisions and all that is durable are not touched. Without a summary, lists the compactions.

    \b
    Examples:
      wakelog compact fix-bug@1..@8 -m "The lifetime was 300 s; now it is a week."
      wakelog compact fix-bug
    """
    if summary and file:
        raise click.UsageError("give the summary with -m or with -F, not both")
    session, spot, _ = select(ctx, where)
    text = file.read() if file else summary
    if not text.strip():
        if spot:
            raise click.UsageError("a compaction needs a summary: -m TEXT or -F FILE")
        _list(ctx, session)
        return
    if not spot:
        raise click.UsageError("name the range: fix-bug@1..@8")
    span = place(ctx, session, spot)
    seq = session.context.compact(span.first, span.last, text)
    [made] = [c for c in session.context.compactions() if c.seq == seq]
    data = {"session": session.id, "name": session.name or None, **_plain(made)}
    back = f"wakelog expand {handle(session)}@e{seq}"
    name = inert(session.name or session.id, lines=False)
    told = f"{name}: e{seq} stands for e{span.first}..e{span.last} ({back} takes it back)"
    ctx.answer("compact", data, lambda: ctx.say(told))


def _list(ctx: Context, session: Session[Any]) -> None:
    found = session.context.compactions()

    def human() -> None:
        if not found:
            ctx.say("nothing is compacted")
            return
        columns = (Column("event"), Column("stands for"), Column("when", drop=2), Column("summary", least=20))
        rows = [
            (
                Cell(f"e{c.seq}", {"fg": "cyan"}),
                f"e{c.first}..e{c.last}" + (f" (inside e{c.covered_by})" if c.covered_by else ""),
                clock(c.at, utc=ctx.utc),
                (f"{glyph('warn')} {c.source or c.trust}: " if c.trust != "trusted" else "") + text_of(c.summary)[:400],
            )
            for c in found
        ]
        say_table(ctx, columns, rows)

    data = {"session": session.id, "name": session.name or None, "compactions": [_plain(c) for c in found]}
    ctx.answer("compact", data, human)


def _plain(each: Summary) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(each)
    plain["timestamp"] = iso(plain.pop("at"))
    return {**plain, "source": each.source or None, "covered_by": each.covered_by or None}


@click.command("expand")
@click.argument("where", metavar="SEL", shell_complete=complete_selector)
@click.option("--dry-run", is_flag=True, help="Only show what would be in view again.")
@click.option("-m", "--message", "why", default="", metavar="TEXT", help="Why; kept in the log.")
@common
def expand_command(ctx: Context, where: str, dry_run: bool, why: str) -> None:
    """Takes a compaction back: what its summary stood for is in view again.

    \b
    Examples:
      wakelog expand fix-bug@e113 --dry-run
      wakelog expand -s fix-bug e113
    """
    session, spot, _ = select(ctx, where)
    if not spot:
        raise click.UsageError("name the compaction, as wakelog compact lists them: fix-bug@e113")
    seq = place(ctx, session, spot).last
    items = session.context.replaced(seq)
    did = 0 if dry_run else session.context.expand(seq, why=why)
    tokens = sum(i.tokens for i in items)
    data = {
        "session": session.id,
        "name": session.name or None,
        "compaction": seq,
        "seq": did or None,
        "items": [{"key": i.key, "turn": i.turn or None, "kind": i.kind, "tokens": i.tokens} for i in items],
        "tokens": tokens,
    }

    def human() -> None:
        name = inert(session.name or session.id, lines=False)
        verb = "would be in view again" if dry_run else "is in view again"
        ctx.say(f"{name}: what e{seq} stood for {verb}: {len(items)} items, about {tokens:,} tokens")
        if dry_run:
            columns = (Column("key"), Column("turn"), Column("what", least=20))
            rows = [
                (Cell(i.key, {"fg": "cyan"}), f"@{i.turn}" if i.turn else glyph("dash"), i.text[:400]) for i in items
            ]
            say_table(ctx, columns, rows)
            ctx.say("This was a dry run: nothing was written.")

    ctx.answer("expand", data, human)
