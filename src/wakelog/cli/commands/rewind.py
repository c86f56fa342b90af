"""`wakelog rewind`: move the view back, after saying what that does and what it does not."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from wakelog.cli.completing import complete_selector
from wakelog.cli.context import Context, common
from wakelog.cli.text import glyph, inert
from wakelog.errors import ConflictError
from wakelog.history.preview import Beyond, FileBeyond, RewindPreview, preview_rewind
from wakelog.session import Session

FILES_SHOWN = 12


@click.command("rewind")
@click.argument("selector", metavar="SEL", shell_complete=complete_selector)
@click.option("--what", type=click.Choice(["state"]), default="state", help="What to rewind; files are never touched.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and stop.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("-m", "--message", "why", default="", metavar="TEXT", help="Why; kept in the log.")
@common
def rewind_command(ctx: Context, selector: str, what: str, dry_run: bool, yes: bool, why: str) -> None:
    """Moves the view of a session back to a point. Nothing is removed: the turns in between stay in the log, and
    `wakelog undo` takes the rewind back.

    Goal, facts, decisions, labels, working set and data return to what they were. Status, turn numbers, money, flags,
    dead ends and open calls stay. Files and effects outside are listed, never touched.

    \b
    Examples:
      wakelog rewind fix-bug@4 --dry-run
      wakelog rewind @-1 -m "wrong approach"
      wakelog rewind -s fix-bug cp:before-fix --yes
    """
    session, place = ctx.select(selector)
    if not place.first or place.last:
        raise click.UsageError(f"rewind goes to one point: {session.name or session.id}@4, e12, cp:NAME, …")
    to = session.seq(place.first) or 1  # before anything is no state; the first there is, is as it was opened
    preview = preview_rewind(session.log, to)
    for_people = not ctx.json and not ctx.ndjson
    if for_people:
        show_preview(ctx, session, preview)
    nothing = to == preview.head
    if not dry_run and not nothing:
        ctx.confirm("Rewind?", yes=yes)
        if session.head.seq != preview.head:
            raise ConflictError(
                f"{session.name or session.id} went on while you were looking: it is at e{session.head.seq} now",
                kind="head-moved",
                hint="look again",
                head_seq=session.head.seq,
            )
        session.rewind(to, why=why)
    done = not dry_run and not nothing
    undo = f"wakelog undo {session.name or session.id}"
    data = {
        **msgspec.to_builtins(preview),
        "name": session.name,
        "dry_run": dry_run,
        "done": done,
        "operation": session.head.seq if done else None,
        "undo": undo if done else None,
    }
    ctx.answer("rewind", data, lambda: _show_end(ctx, preview, dry_run, nothing, undo))


def _show_end(ctx: Context, preview: RewindPreview, dry_run: bool, nothing: bool, undo: str) -> None:
    if nothing:
        ctx.say("The view is there already: nothing to do.")
    elif dry_run:
        ctx.say("This was a dry run: nothing was written.")
    else:
        ctx.say(f"Rewound to {_place(preview.to, preview.to_turn)}. To take it back: {inert(undo, lines=False)}")


def show_preview(ctx: Context, session: Session[Any], preview: RewindPreview) -> None:
    """What would change and what would not, one aspect a line."""
    arrow = glyph("arrow")
    name = inert(session.name or session.id, lines=False)
    turns = preview.turn - preview.to_turn
    stay = f"{turns} {'turn stays' if turns == 1 else 'turns stay'} in the log" if turns else "the events between stay"
    ctx.say(
        f"{ctx.style(f'Rewind {name}', bold=True)} from {_place(preview.head, preview.turn)}"
        f" to {_place(preview.to, preview.to_turn)}  ({stay}; nothing is removed)"
    )
    _row(
        ctx, "state", f"{preview.keys_now:,} keys {arrow} {preview.keys_then:,} keys" if preview.parts else "no change"
    )
    for part in preview.parts:
        counts = f"{part.now:,} {arrow} {part.then:,}" if part.now != part.then else f"{part.now:,}"
        changes = f"{part.changed:,} {'key changes' if part.changed == 1 else 'keys change'}"
        _row(ctx, "", f"{part.part:<12}{counts:<16}{changes}")
    _row(ctx, "conversation", f"{preview.messages_now:,} messages {arrow} {preview.messages_then:,} in view")
    _files(ctx, preview.files)
    _effects(ctx, preview.effects)
    if preview.stays:
        _row(ctx, "stays", ", ".join(preview.stays))
    if preview.holder:
        holder = inert(preview.holder, lines=False)
        _row(ctx, "careful", ctx.style(f"{holder} is writing this session at this moment", fg="yellow"))


def _files(ctx: Context, files: tuple[FileBeyond, ...]) -> None:
    title = "files"
    for file in files[:FILES_SHOWN]:
        lines = f"+{file.added} {glyph('minus')}{file.removed}"
        text = f"{inert(file.path, lines=False):<32}  {file.change:<9} {lines:<9} @{file.turn}   not touched"
        _row(ctx, title, text)
        title = ""
    if len(files) > FILES_SHOWN:
        _row(ctx, "", f"and {len(files) - FILES_SHOWN} more, not touched")


def _effects(ctx: Context, effects: tuple[Beyond, ...]) -> None:
    if not effects:
        return
    count = len(effects)
    what = "1 effect" if count == 1 else f"{count} effects"
    _row(ctx, "outside", ctx.style(f"{what} cannot be undone:", fg="yellow"))
    for effect in effects[:FILES_SHOWN]:
        where = f"@{effect.turn}" if effect.turn else "between turns"
        _row(ctx, "", f"{inert(effect.tool, lines=False)} ({effect.effect}, {effect.outcome})  {where} e{effect.seq}")
    if count > FILES_SHOWN:
        _row(ctx, "", f"and {count - FILES_SHOWN} more")


def _row(ctx: Context, title: str, text: str) -> None:
    ctx.say(f"  {ctx.style(f'{title:<14}', dim=True)}{text}")


def _place(seq: int, turn: int) -> str:
    return f"@{turn} (e{seq})" if turn else f"e{seq}"
