"""`wakelog git`: links commits to the turns whose work they contain."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.render.results import shape, shows
from wakelog.cli.render.sessions import title
from wakelog.cli.render.table import Cell, Row, say_table
from wakelog.cli.shell_completion import complete_session
from wakelog.cli.text import fit, inert_line, iso
from wakelog.errors import WakelogError
from wakelog.files.commit_links import CommitLink
from wakelog.files.git_hook import install_hook, remove_hook
from wakelog.model.names import unquoted_name
from wakelog.store.git import CommitTurn, CommitTurns, SessionCommits

HASH_LENGTH = 10
_LINKS = " |  |  | 16"
_TURNS = "12 |  | 24"
_HOW = {
    "recorded": "a recorded call made it",
    "matched": "it has a file just as the turn left it",
    "derived": "it was made during the turn, with a file that the turn changed",
    "noted": "a note in git, or its message, says so",
}


@click.group("git")
def git_command() -> None:
    """Link the commits of a repository to the turns whose work they have. Git is only read, unless you ask for notes or
    for the hook.

    Examples:
      wakelog git link --all
      wakelog git show HEAD
      wakelog git hook install
    """


@git_command.command("link")
@click.argument("name", metavar="[SESSION]", required=False, default="", shell_complete=complete_session)
@click.option("--all", "everything", is_flag=True, help="Link all sessions that worked in this repository.")
@click.option(
    "--repo", "folder", metavar="DIR", default="", help="Use the repository of this folder (default: the session's)."
)
@click.option("--notes", is_flag=True, help="Write each link to git too, as a note in refs/notes/wakelog.")
@click.option("--dry-run", is_flag=True, help="Show what would be linked; write nothing.")
@common
def link(ctx: CommandContext, name: str, everything: bool, folder: str, notes: bool, dry_run: bool) -> int:
    """Find the commits that have work of a session, and record each link in its log, once.

    A link says how it is known. recorded: a call of the turn made the commit. matched: the commit has a file just as
    the turn left it. derived: the commit was made during the turn, with a file that the turn changed. With --notes, git
    also gets a note on each commit; HEAD, branches, index and messages are never touched. The exit code is 1 when
    there is no such commit.

    Examples:
      wakelog git link fix-bug
      wakelog git link --all --notes
    """
    if everything and name:
        raise click.UsageError("name a session, or use --all")
    if everything:
        commits = ctx.store.git.link(folder or ".", notes=notes, dry_run=dry_run)
    else:
        session = ctx.session(name)
        links = session.files.link_commits(folder, notes=notes, dry_run=dry_run)
        commits = [SessionCommits(session.id, session.name, tuple(links))]
    ctx.answer("gitlinks", commits, lambda: _show_links(ctx, commits, dry_run))
    newest = next((session.links[-1] for session in reversed(commits) if session.links), None)
    if newest:
        ctx.suggest(f"wakelog git show {newest.commit[:HASH_LENGTH]}")
    return 0 if newest else NO


def _show_links(ctx: CommandContext, sessions: Sequence[SessionCommits], dry_run: bool) -> None:
    for session in sessions:
        ctx.say(title(ctx, ctx.store.resume(session.session)))
        say_table(ctx, _LINKS, list(_link_rows(session.links)), titles=False)
    if not any(session.links for session in sessions):
        ctx.say("no commit with work of a turn was found")
    elif dry_run:
        ctx.remark("nothing was written")


def _link_rows(links: Iterable[CommitLink]) -> Iterable[Row]:
    for link in links:
        yield (
            Cell(f"  @{link.turn}", {"fg": "cyan"}),
            Cell(link.commit[:HASH_LENGTH], {"fg": "yellow"}),
            Cell(link.known, {"dim": True}),
            link.subject,
        )


@git_command.command("show")
@click.argument("revision", metavar="[REV]", default="HEAD")
@click.option("--repo", "folder", metavar="DIR", default=".", help="Use the repository of this folder (default: here).")
@common
def show(ctx: CommandContext, revision: str, folder: str) -> int:
    """List the turns behind a commit, with the words that each was asked for. They are known after `wakelog git link`.
    The exit code is 1 when there is none.

    Examples:
      wakelog git show HEAD~2
    """
    commit = ctx.store.git.turns_behind(revision, folder=folder)
    ctx.answer("gitturns", commit, records=commit.turns)
    here = next((turn for turn in commit.turns if turn.is_here), None)
    if here:
        ctx.suggest(f"wakelog show {unquoted_name(here.name) or here.session}@{here.turn}")
    elif not commit.turns:
        ctx.suggest("wakelog git link --all")
    return 0 if commit.turns else NO


@shows(CommitTurns)
def _show_turns(ctx: CommandContext, commit: CommitTurns) -> None:
    front = ctx.style(commit.commit.hash[:HASH_LENGTH], fg="yellow")
    ctx.say(f"{front} {fit(commit.commit.subject, ctx.columns - HASH_LENGTH - 1)}")
    rows = [_turn_row(turn) for turn in commit.turns]
    say_table(ctx, _TURNS, rows, titles=False, none="  no turn is linked to it")


def _turn_row(turn: CommitTurn) -> Row:
    asked = " ".join(turn.words.text.split()) if turn.words else ""
    text = f'"{asked}"' if asked else "" if turn.is_here else "the session is not in this store"
    return (
        Cell(f"  {turn.name or turn.session}@{turn.turn}", {"fg": "cyan"}),
        Cell(_HOW[turn.known], {"dim": True}),
        Cell(text, {"bold": True}),
    )


@git_command.command("hook")
@click.argument("what", type=click.Choice(["install", "remove"]))
@click.option("--repo", "folder", metavar="DIR", default=".", help="Use the repository of this folder (default: here).")
@common
def hook(ctx: CommandContext, what: str, folder: str) -> None:
    """Install or remove a hook of git that names the turns behind a commit in its message: `Wakelog-Turn: fix-bug@3`.

    The hook is prepare-commit-msg. An existing hook stays and gets a few lines at its end; `remove` deletes exactly
    those lines. The hook names the turns that changed a file in the commit since that file was last committed. It never
    stops a commit.

    Examples:
      wakelog git hook install
      wakelog git hook remove
    """
    install, own = what == "install", shutil.which("wakelog") or sys.argv[0]
    path, changed = install_hook(folder, own) if install else remove_hook(folder)
    done = "is in" if install else "was removed from"
    same = "was there already:" if install else "was not there:"
    line = f"the hook {done if changed else same} {inert_line(str(path))}"
    ctx.answer("githook", {"hook": str(path), "installed": install, "changed": changed}, line)


@git_command.command("trailer")
@click.argument("message", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("kind", metavar="[KIND]", default="")
@common
def trailer(ctx: CommandContext, message: Path, kind: str) -> None:
    """Add the turns behind the staged files to the file with a commit message. The hook of git runs this; it never
    fails. Merges are left alone.

    Example:
      wakelog git trailer .git/COMMIT_EDITMSG message
    """
    turns: list[str] = []
    with contextlib.suppress(WakelogError):
        if kind not in ("merge", "squash"):
            turns = ctx.store.git.add_trailers(message)
    ctx.answer("gittrailer", {"turns": turns}, inert_line(", ".join(turns) or "no turn"))


shape(SessionCommits, "session name? links")
shape(
    CommitLink,
    "commit subject turn event=on known committed_at",
    committed_at=lambda link: iso(link.at_s * 1_000_000) if link.at_s else None,
)
shape(
    CommitTurns,
    "commit=commit.hash subject=commit.subject committed_at turns",
    committed_at=lambda found: iso(found.commit.at_s * 1_000_000),
)
shape(
    CommitTurn,
    "session name? turn known event=on? words in_store=is_here",
    words=lambda turn: turn.words.text if turn.words else None,
)
