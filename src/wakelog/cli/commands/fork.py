"""`wakelog fork` and `adopt`: create a session that shares the history up to a point, and take its result back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import PARTIAL
from wakelog.cli.options import place_argument, why_option, yes_option
from wakelog.cli.render.changes import change_lines
from wakelog.cli.render.sessions import handle, label, plain_move
from wakelog.cli.selectors import refuse_if_moved
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import count, duration, glyph, inert_line, money
from wakelog.compare.adoption_preview import AdoptionPreview
from wakelog.diff.turn_diff import TurnDiff
from wakelog.errors import InvalidInputError
from wakelog.files.checkout import Worktree
from wakelog.model.short_text import pluralize
from wakelog.session import Session
from wakelog.store import Store

MAX_SHOWN = 16
_WORDS = {
    "message.added": "message",
    "decision.made": "decision",
    "fact.recorded": "fact",
    "dead_end.noted": "dead end",
    "artefact.recorded": "artefact",
    "file.changed": "changed file",
    "history.compacted": "compaction",
}


@click.command("fork")
@place_argument()
@click.option("-n", "--name", default="", help="Name the new session (default: the old name with a number).")
@click.option("--worktree", default=None, metavar="DIR", help="Also make a git worktree with the files as they were.")
@why_option
@common
def fork_command(ctx: CommandContext, selector: str, name: str, worktree: str | None, why: str) -> int:
    """Create a new session that shares the history up to a point. This is free, however long the history is, and does
    not change the old session. Calls that are open at the point are not inherited.

    Examples:
      wakelog fork fix-bug@4 -n try-redis
      wakelog fork                        the newest session, as it is now
      wakelog fork fix-bug@4 -n try-redis --worktree ../try-redis
    """
    where = ctx.place(selector)
    session, at = where.session, where.point("a fork starts at one point, not at a range")
    at = session.seq() if at is None else at
    if at < 1:
        raise InvalidInputError(
            "there is nothing to fork before the first event", kind="bad-point", hint="the first event is e1"
        )
    made = session.files.worktree(at, worktree) if worktree is not None else None
    fork = session.fork(at, name=name or _free_name(ctx.store, session.name), why=why)
    turn = fork.head.turn
    place = f"@{turn} (e{at})" if turn else f"e{at}"
    line = f"Forked {label(session)} at {place} as {ctx.style(label(fork), bold=True)}  {fork.id}"
    data = {"parent": session.id, "parent_name": session.name, "at": at, "turn": turn, "head": fork.head.seq}
    if made is not None:
        line, data["worktree"] = "\n".join([line, *_worktree_lines(made)]), msgspec.to_builtins(made)
    ctx.done("fork", fork, line, **data)
    ctx.suggest(f"wakelog log {fork}", f"wakelog diff {session.name}@ {fork.name}@")
    return PARTIAL if made is not None and made.files.missing else 0


def _worktree_lines(worktree: Worktree) -> Iterator[str]:
    guess = "" if worktree.is_recorded else ", which is HEAD now: the session does not say where it started"
    yield f"  worktree  {inert_line(worktree.folder)} at {worktree.commit[:10]}{guess}"
    written, removed = len(worktree.files.written), len(worktree.files.removed)
    yield f"  files     {written} as they were, {removed} removed"
    for path, why in worktree.files.missing[:MAX_SHOWN]:
        yield f"  not there {inert_line(path)}: {inert_line(why)}"
    if (more := len(worktree.files.missing) - MAX_SHOWN) > 0:
        yield f"            and {more} more"


def _free_name(store: Store, name: str) -> str:
    """The name with the first free number; empty for a session without a name."""
    if not name:
        return ""
    return next(n for i in itertools.count(2) if store.engine.find(n := f"{name}-{i}") is None)


@click.command("adopt")
@click.argument("selector", metavar="FORK", shell_complete=complete_selector)
@click.option("--force", is_flag=True, help="Adopt even if the session has new events since the fork.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@yes_option
@why_option
@common
def adopt_command(ctx: CommandContext, selector: str, force: bool, dry_run: bool, yes: bool, why: str) -> int:
    """Take the result of a fork back into its parent session, as it is now or was at a point.

    The view of the parent goes back to the fork point. Goal, facts, decisions, working set, artefacts and data become
    those of the fork, and its messages follow. What the parent did after the fork point leaves the view and stays in
    the log. The fork does not change and keeps its turns and calls; files on disk are not touched. What it spent counts
    for the parent's budget, too. `wakelog undo` reverts the rest.

    Examples:
      wakelog adopt try-refresh --dry-run
      wakelog adopt try-refresh -m "it needs no migration"
      wakelog adopt try-refresh@5 --force
    """
    where = ctx.place(selector)
    fork, at = where.session, where.point("a fork is adopted as it was at one point, not over a range")
    if (origin := fork.head.fork) is None:
        raise InvalidInputError(
            f"{fork} is not a fork: there is no parent to adopt it into",
            kind="not-its-fork",
            hint="find forks with wakelog ls",
        )
    session = ctx.store.resume(origin.parent)
    preview = session.history.preview_adopt(fork, at, force=force)
    if ctx.is_for_people:
        _show(ctx, session, fork, preview)
    if not dry_run:
        ctx.confirm("Adopt it?", yes=yes)
        refuse_if_moved(session, preview.head)
        session.adopt(fork, preview.at, why=why, force=force)
    undo = f"wakelog undo {handle(session)}"
    data = {
        **{name: value for name, value in msgspec.to_builtins(preview).items() if name != "changes"},
        "changes": preview.changes,
        "name": session.name or None,
        "fork_name": fork.name or None,
        **plain_move(undo, 0 if dry_run else preview.head + 1, dry_run=dry_run),
    }
    end = f"Adopted {label(fork)}. To undo: {inert_line(undo)}"
    ctx.answer("adopt", data, "This was a dry run: nothing was written." if dry_run else end)
    return PARTIAL if preview.gone and not dry_run else 0


def _show(ctx: CommandContext, session: Session[Any], fork: Session[Any], preview: AdoptionPreview) -> None:
    name, child = (label(s) for s in (session, fork))
    ctx.say(
        f"{ctx.style(f'Adopt {child}', bold=True)} at e{preview.at} into {name}: the view goes back to e{preview.to},"
        " and the fork's result follows"
    )
    copied = [pluralize(count, _WORDS.get(kind, kind)) for kind, count in preview.copied.items()]
    ctx.row("copied", ", ".join(copied) or "nothing")
    if preview.gone:
        ctx.row("not copied", ctx.style(f"{preview.gone} whose content was erased or pruned", fg="yellow"))
    if preview.leaving:
        turns = f"{pluralize(preview.leaving, 'turn')} of {name}"
        ctx.row("leaves view", f"{turns}; nothing is removed")
    ctx.row("stays there", "the fork's turns and calls; files on disk are not touched")
    cost = preview.cost
    spent = [f"{count(cost.tokens_in)} tokens"] if cost.tokens_in else []
    spent += [money(cost.usd_micros)] if cost.usd_micros else []
    spent += [duration(cost.duration_us)] if cost.duration_us else []
    if spent:
        ctx.row("counts here", f"what the fork spent: {' · '.join(spent)}")
    effects = [f"{inert_line(e.tool)} ({e.effect}, {e.outcome})  e{e.seq}" for e in preview.effects]
    ctx.rows("outside", effects, MAX_SHOWN)
    diff = TurnDiff((session.id, preview.head), (fork.id, preview.at), preview.changes, [])
    lines = list(change_lines(ctx, diff, {}, indent="  ", is_move=True))
    ctx.say_all(lines[:MAX_SHOWN])
    if len(lines) > MAX_SHOWN:
        command = f"wakelog diff {handle(session)}@ {handle(fork)}@"
        ctx.say(f"  {len(lines) - MAX_SHOWN} more lines {glyph('dot')} {command}")
