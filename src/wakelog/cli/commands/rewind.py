"""`wakelog rewind`, `undo` and `redo`: move the view back, after a preview of what changes and what does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import PARTIAL
from wakelog.cli.options import session_argument, why_option, yes_option
from wakelog.cli.render.sessions import label, plain_move
from wakelog.cli.selectors import refuse_if_moved
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import glyph, inert, inert_line
from wakelog.diff.rewind_preview import Beyond, FileBeyond, RewindPreview
from wakelog.model.short_text import pluralize
from wakelog.session import Session
from wakelog.session.undo import Undone

if TYPE_CHECKING:
    from wakelog.files.restore import RestoredFiles
    from wakelog.files.restore_plan import RestorePlan


MAX_SHOWN = 12
PARTS = ("state", "conversation", "files")
F = TypeVar("F", bound=Callable[..., Any])
_force = click.option(
    "--force", is_flag=True, help="Replace files that you edited since, too; copies of them are kept."
)
_roots = click.option(
    "--root", "roots", multiple=True, metavar="DIR", help="Restore in this folder (repeat; the first is the project's)."
)


def _parts(ctx: click.Context, param: click.Parameter, value: str) -> tuple[str, ...]:
    """The parts that `--what` names, checked."""
    parts = [part.strip() for part in value.split(",") if part.strip()]
    unknown = [part for part in parts if part not in PARTS]
    if unknown or not parts:
        raise click.BadParameter(f"{', '.join(unknown) or 'nothing'}: choose from {', '.join(PARTS)}")
    if "conversation" in parts and "state" not in parts:
        # Both are read from the same view, so one cannot move without the other.
        raise click.BadParameter("conversation and state move together: --what state")
    return tuple(part for part in PARTS if part in parts or (part == "conversation" and "state" in parts))


@click.command("rewind")
@click.argument("selector", metavar="SEL", shell_complete=complete_selector)
@click.option(
    "--what",
    default="state",
    callback=_parts,
    metavar="PARTS",
    help="Rewind these: state (with the conversation), files, or state,files.  [default: state]",
)
@_force
@_roots
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@yes_option
@why_option
@common
def rewind_command(
    ctx: CommandContext,
    selector: str,
    what: tuple[str, ...],
    force: bool,
    roots: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    why: str,
) -> int:
    """Move the view of a session back to a point. Nothing is removed: the turns in between stay in the log, and
    `wakelog undo` reverts the rewind.

    Goal, facts, decisions, labels, working set, data and the conversation return to what they were. Status, turn
    numbers, money, flags, dead ends and open calls stay. Effects outside are listed and never touched.

    Files are listed, and changed only with --what files: files with captured contents are restored. Files that you
    edited since are kept, files without captured contents are named, and git is left alone. The exit code is 7 when
    something could not be restored.

    Examples:
      wakelog rewind fix-bug@4 --dry-run
      wakelog rewind @-1 -m "wrong approach"
      wakelog rewind @-1 --what state,files
      wakelog rewind -s fix-bug cp:before-fix --yes
    """
    where = ctx.place(selector)
    session, refusal = where.session, f"rewind goes to one point: {where.session}@4, e12, cp:NAME, …"
    if (to := where.point(refusal)) is None:
        raise click.UsageError(refusal)
    to = to or 1  # @0 has no state; the first state is that of the opened session
    preview = session.history.preview_rewind(to)
    plan = session.files.plan(to, roots=roots, force=force) if "files" in what else None
    if ctx.is_for_people:
        show_preview(ctx, session, preview, what, plan)
    done, restored = not dry_run and to != preview.head, None
    if done:
        show = partial(_show_diff, ctx, session, plan) if plan else None
        ctx.confirm("Proceed?" if plan else "Rewind?", yes=yes, show=show)
        refuse_if_moved(session, preview.head)
        if plan is None:
            session.rewind(to, why=why)
        else:
            restored = session.files.restore(plan, state="state" in what, why=why)
    data = {
        **msgspec.to_builtins(preview),
        "name": session.name,
        "what": list(what),
        **plain_move(f"wakelog undo {session}", session.head.seq if done else 0, dry_run=dry_run),
        "restore": plan,
        "results": restored.results if restored else None,
    }
    ctx.answer("rewind", data, lambda: _show_end(ctx, session, preview, what, restored, dry_run))
    return PARTIAL if restored is not None and restored.is_partial else 0


def _show_diff(ctx: CommandContext, session: Session[Any], plan: RestorePlan) -> None:
    from wakelog.cli.render.files import diff_lines

    for diff in session.files.plan_diff(plan):
        ctx.say_all(diff_lines(ctx, diff))


def _show_end(
    ctx: CommandContext,
    session: Session[Any],
    preview: RewindPreview,
    what: tuple[str, ...],
    restored: RestoredFiles | None,
    dry_run: bool,
) -> None:
    if preview.to == preview.head:
        ctx.say("The view is already there: nothing to do.")
        return
    if dry_run:
        ctx.say("This was a dry run: nothing was written.")
        return
    if restored is not None:
        from wakelog.cli.render.files import result_lines

        ctx.say_all(result_lines(ctx, restored))
        if not restored.operation:
            ctx.say("Nothing was done.")
            return
    place = _place(preview.to, preview.to_turn)
    did = f"Rewound to {place}." if "state" in what else f"Restored the files to {place}."
    ctx.say(f"{did} To undo: {inert_line(f'wakelog undo {session}')}")


def show_preview(
    ctx: CommandContext,
    session: Session[Any],
    preview: RewindPreview,
    what: tuple[str, ...] = ("state", "conversation"),
    plan: RestorePlan | None = None,
) -> None:
    """Prints what would change and what would not, one aspect a line."""
    name = label(session)
    turns = preview.turn - preview.to_turn
    stay = f"{turns} {'turn stays' if turns == 1 else 'turns stay'} in the log" if turns else "the events between stay"
    here, there = _place(preview.head, preview.turn), _place(preview.to, preview.to_turn)
    if "state" in what:
        ctx.say(f"{ctx.style(f'Rewind {name}', bold=True)} from {here} to {there}  ({stay}; nothing is removed)")
        _say_state(ctx, preview)
    else:
        ctx.say(f"{ctx.style(f'Restore the files of {name}', bold=True)} to {there}  (the session stays at {here})")
        ctx.row("state", "not selected")
        ctx.row("conversation", "not selected")
    if plan is None:
        ctx.rows("files", [_file_line(file) for file in preview.files], MAX_SHOWN, rest=", not touched")
    else:
        from wakelog.cli.render.files import plan_lines

        ctx.rows("files", list(plan_lines(ctx, plan)))
    if preview.effects:
        effects = pluralize(len(preview.effects), "effect")
        ctx.row("outside", ctx.style(f"{effects} cannot be undone:", fg="yellow"))
        ctx.rows("", [_effect_line(effect) for effect in preview.effects], MAX_SHOWN)
    if plan is not None and plan.git:
        ctx.row("git", f"HEAD stays at {plan.git[:7]}; nothing is reset or committed")
    if preview.stays and "state" in what:
        ctx.row("stays", ", ".join(preview.stays))
    if preview.holder:
        holder = inert_line(preview.holder)
        ctx.row("careful", ctx.style(f"{holder} is writing this session at this moment", fg="yellow"))


def _say_state(ctx: CommandContext, preview: RewindPreview) -> None:
    arrow = glyph("arrow")
    ctx.row("state", f"{preview.keys_now:,} keys {arrow} {preview.keys_then:,} keys" if preview.parts else "no change")
    for part in preview.parts:
        counts = f"{part.now:,} {arrow} {part.then:,}" if part.now != part.then else f"{part.now:,}"
        changes = f"{part.changed:,} {'key changes' if part.changed == 1 else 'keys change'}"
        ctx.row("", f"{part.part:<12}{counts:<16}{changes}")
    ctx.row("conversation", f"{preview.messages_now:,} messages {arrow} {preview.messages_then:,} in view")


def _file_line(file: FileBeyond) -> str:
    lines = f"+{file.added} {glyph('minus')}{file.removed}"
    return f"{inert_line(file.path):<32}  {file.change:<9} {lines:<9} @{file.turn}   not touched"


def _effect_line(effect: Beyond) -> str:
    where = f"@{effect.turn}" if effect.turn else "between turns"
    return f"{inert_line(effect.tool)} ({effect.effect}, {effect.outcome})  {where} e{effect.seq}"


def _place(seq: int, turn: int) -> str:
    return f"@{turn} (e{seq})" if turn else f"e{seq}"


def _options(function: F) -> F:
    no_files = click.option("--no-files", is_flag=True, help="Leave files as they are.")
    for option in (_roots, _force, no_files, session_argument):
        function = option(function)
    return function


@click.command("undo")
@_options
@common
def undo_command(ctx: CommandContext, session: str, no_files: bool, force: bool, roots: tuple[str, ...]) -> int:
    """Undo the newest rewind that was not undone yet. Repeat it to go further back.

    Events after the rewind leave the view and stay in the log. Files that the rewind restored change back, except files
    that you edited since. Effects and erasures are not undone.

    Example:
      wakelog undo fix-bug
    """
    return _undo(ctx, session, "undo", files=not no_files, force=force, roots=roots)


@click.command("redo")
@_options
@common
def redo_command(ctx: CommandContext, session: str, no_files: bool, force: bool, roots: tuple[str, ...]) -> int:
    """Revert the newest undo, as long as nothing was rewound since. Repeat it to go further forward.

    Example:
      wakelog redo fix-bug
    """
    return _undo(ctx, session, "redo", files=not no_files, force=force, roots=roots)


def _undo(ctx: CommandContext, session: str, verb: str, **how: Any) -> int:
    found = ctx.session(session)
    before = found.head.seq
    undone: Undone = getattr(found, verb)(**how)
    data = {
        "session": found.id,
        "name": found.name,
        "operation": undone.operation,
        "mode": undone.mode,
        "went_to": undone.went_to,
        "head": undone.head.seq,
        "left_view": undone.left_view,
        "effects": msgspec.to_builtins(undone.effects),
        "back": f"wakelog rewind -s {found} e{before}",
        "files": undone.files.results if undone.files else None,
        "left_files": undone.left_files,
    }
    ctx.answer(verb, data, lambda: _show(ctx, found, undone, data))
    return PARTIAL if undone.files is not None and undone.files.is_partial else 0


def _show(ctx: CommandContext, session: Session[Any], undone: Undone, data: dict[str, Any]) -> None:
    name = label(session)
    what = "the adoption" if data["mode"] == "adopt" else f"the {data['mode']}"
    went = f"(it went to e{data['went_to']})" if not undone.only_files else "of files"
    ctx.say(f"{name}: undid {what} at e{undone.operation} {went}.")
    if data["left_view"]:
        ctx.say(
            f"  {data['left_view']} later events left the view and stay in the log; back to them: {inert(data['back'])}"
        )
    for effect in data["effects"]:
        tool = inert_line(effect["tool"])
        ctx.say(f"  not undone: {tool} ({effect['effect']}, {effect['outcome']}) at e{effect['seq']}")
    if undone.left_files:
        ctx.say("  files were left as they are")
    if undone.files is not None:
        from wakelog.cli.render.files import result_lines

        ctx.say_all(f"  {line}" for line in result_lines(ctx, undone.files))
