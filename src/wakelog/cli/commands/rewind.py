"""`wakelog rewind`: move the view back, after saying what that does and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.errors import PARTIAL
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import glyph, inert
from wakelog.diff.rewind_preview import Beyond, FileBeyond, RewindPreview, preview_rewind
from wakelog.errors import ConflictError
from wakelog.session import Session

if TYPE_CHECKING:
    from wakelog.files.restore import Restored
    from wakelog.files.restore_plan import RestorePlan

FILES_SHOWN = 12
PARTS = ("state", "conversation", "files")


def _parts(ctx: click.Context, param: click.Parameter, given: str) -> tuple[str, ...]:
    """What `--what` names, checked."""
    parts = [part.strip() for part in given.split(",") if part.strip()]
    unknown = [part for part in parts if part not in PARTS]
    if unknown or not parts:
        raise click.BadParameter(f"{', '.join(unknown) or 'nothing'}: choose from {', '.join(PARTS)}")
    if "conversation" in parts and "state" not in parts:
        # Both are read from the same view of the same events: one cannot be moved and the other left.
        raise click.BadParameter("conversation and state move together: --what state")
    return tuple(part for part in PARTS if part in parts or (part == "conversation" and "state" in parts))


@click.command("rewind")
@click.argument("selector", metavar="SEL", shell_complete=complete_selector)
@click.option(
    "--what",
    default="state",
    callback=_parts,
    metavar="PARTS",
    help="What to rewind: state (with the conversation), files, or state,files.  [default: state]",
)
@click.option("--force", is_flag=True, help="Replace files you edited since as well; copies of them are kept.")
@click.option("--root", "roots", multiple=True, metavar="DIR", help="The project's folder, and others to restore in.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and stop.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("-m", "--message", "why", default="", metavar="TEXT", help="Why; kept in the log.")
@common
def rewind_command(
    ctx: Context,
    selector: str,
    what: tuple[str, ...],
    force: bool,
    roots: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    why: str,
) -> int:
    """Moves the view of a session back to a point. Nothing is removed: the turns in between stay in the log, and
    `wakelog undo` takes the rewind back.

    Goal, facts, decisions, labels, working set, data and the conversation return to what they were. Status, turn
    numbers, money, flags, dead ends and open calls stay. Effects outside are listed, never touched.

    Files are listed, and touched only with --what files: those whose contents were captured go back to what they were.
    What you edited since is kept, what was not captured is named, git is left alone. Exits with 7 if something could
    not be brought back.

    \b
    Examples:
      wakelog rewind fix-bug@4 --dry-run
      wakelog rewind @-1 -m "wrong approach"
      wakelog rewind @-1 --what state,files
      wakelog rewind -s fix-bug cp:before-fix --yes
    """
    session, place = ctx.select(selector)
    if not place.first or place.last:
        raise click.UsageError(f"rewind goes to one point: {session.name or session.id}@4, e12, cp:NAME, …")
    to = session.seq(place.first) or 1  # before anything is no state; the first there is, is as it was opened
    preview = preview_rewind(session.log, to)
    plan = _plan(session, to, roots, force) if "files" in what else None
    for_people = not ctx.json and not ctx.ndjson
    if for_people:
        show_preview(ctx, session, preview, what, plan)
    nothing = to == preview.head
    restored = None
    if not dry_run and not nothing:
        ctx.confirm("Proceed?" if plan else "Rewind?", yes=yes, show=_differ(ctx, session, plan) if plan else None)
        _refuse_if_moved(session, preview)
        restored = _do(session, to, what, plan, why)
    done = not dry_run and not nothing
    undo = f"wakelog undo {session.name or session.id}"
    data = {
        **msgspec.to_builtins(preview),
        "name": session.name,
        "what": list(what),
        "dry_run": dry_run,
        "done": done,
        "operation": session.head.seq if done else None,
        "undo": undo if done else None,
        **_plain(plan, restored),
    }
    ctx.answer("rewind", data, lambda: _show_end(ctx, preview, what, restored, dry_run, nothing, undo))
    return PARTIAL if restored is not None and restored.is_partial else 0


def _plan(session: Session[Any], to: int, roots: tuple[str, ...], force: bool) -> RestorePlan:
    from wakelog.files.restore_plan import plan_restore
    from wakelog.session.undo import project_of

    folder = roots[0] if roots else project_of(session.log, None).folder
    return plan_restore(session.log, to, folder=folder, roots=roots, force=force)


def _do(session: Session[Any], to: int, what: tuple[str, ...], plan: RestorePlan | None, why: str) -> Restored | None:
    if plan is None:
        session.rewind(to, why=why)
        return None
    from wakelog.files.restore import restore

    return restore(session.log, plan, rewind_to=to if "state" in what else None, why=why)


def _refuse_if_moved(session: Session[Any], preview: RewindPreview) -> None:
    if session.head.seq != preview.head:
        raise ConflictError(
            f"{session.name or session.id} went on while you were looking: it is at e{session.head.seq} now",
            kind="head-moved",
            hint="look again",
            head_seq=session.head.seq,
        )


def _differ(ctx: Context, session: Session[Any], plan: RestorePlan) -> Any:
    from wakelog.cli.render.files import diff_lines
    from wakelog.files.file_diff import step_diff

    def show() -> None:
        for step in plan.of("restore", "delete"):
            found = step_diff(session.log, step)
            for line in diff_lines(ctx, found) if found is not None else ():
                ctx.say(line)

    return show


def _plain(plan: RestorePlan | None, restored: Restored | None) -> dict[str, Any]:
    if plan is None:
        return {"restore": None, "results": None}
    from wakelog.cli.render.files import plain_plan, plain_results

    return {"restore": plain_plan(plan), "results": plain_results(restored.results) if restored else None}


def _show_end(
    ctx: Context,
    preview: RewindPreview,
    what: tuple[str, ...],
    restored: Restored | None,
    dry_run: bool,
    nothing: bool,
    undo: str,
) -> None:
    if nothing:
        ctx.say("The view is there already: nothing to do.")
        return
    if dry_run:
        ctx.say("This was a dry run: nothing was written.")
        return
    if restored is not None:
        from wakelog.cli.render.files import result_lines

        for line in result_lines(ctx, restored):
            ctx.say(line)
        if not restored.operation:
            ctx.say("Nothing was done.")
            return
    place = _place(preview.to, preview.to_turn)
    did = f"Rewound to {place}." if "state" in what else f"Files went back to {place}."
    ctx.say(f"{did} To take it back: {inert(undo, lines=False)}")


def show_preview(
    ctx: Context,
    session: Session[Any],
    preview: RewindPreview,
    what: tuple[str, ...] = ("state", "conversation"),
    plan: RestorePlan | None = None,
) -> None:
    """What would change and what would not, one aspect a line."""
    name = inert(session.name or session.id, lines=False)
    turns = preview.turn - preview.to_turn
    stay = f"{turns} {'turn stays' if turns == 1 else 'turns stay'} in the log" if turns else "the events between stay"
    here, there = _place(preview.head, preview.turn), _place(preview.to, preview.to_turn)
    if "state" in what:
        ctx.say(f"{ctx.style(f'Rewind {name}', bold=True)} from {here} to {there}  ({stay}; nothing is removed)")
        _state(ctx, preview)
    else:
        ctx.say(f"{ctx.style(f'Restore the files of {name}', bold=True)} to {there}  (the session stays at {here})")
        _row(ctx, "state", "not selected")
        _row(ctx, "conversation", "not selected")
    if plan is None:
        _files(ctx, preview.files)
    else:
        _plan_rows(ctx, session, plan)
    _effects(ctx, preview.effects)
    if plan is not None and plan.git:
        _row(ctx, "git", f"HEAD stays at {plan.git[:7]}; nothing is reset or committed")
    if preview.stays and "state" in what:
        _row(ctx, "stays", ", ".join(preview.stays))
    if preview.holder:
        holder = inert(preview.holder, lines=False)
        _row(ctx, "careful", ctx.style(f"{holder} is writing this session at this moment", fg="yellow"))


def _state(ctx: Context, preview: RewindPreview) -> None:
    arrow = glyph("arrow")
    _row(
        ctx, "state", f"{preview.keys_now:,} keys {arrow} {preview.keys_then:,} keys" if preview.parts else "no change"
    )
    for part in preview.parts:
        counts = f"{part.now:,} {arrow} {part.then:,}" if part.now != part.then else f"{part.now:,}"
        changes = f"{part.changed:,} {'key changes' if part.changed == 1 else 'keys change'}"
        _row(ctx, "", f"{part.part:<12}{counts:<16}{changes}")
    _row(ctx, "conversation", f"{preview.messages_now:,} messages {arrow} {preview.messages_then:,} in view")


def _plan_rows(ctx: Context, session: Session[Any], plan: RestorePlan) -> None:
    from wakelog.cli.render.files import plan_lines

    title = "files"
    for line in plan_lines(ctx, session.log, plan):
        _row(ctx, title, line)
        title = ""


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
