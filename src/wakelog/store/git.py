"""`store.git`: commits in git and the turns behind them, over all sessions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from wakelog.files.git_hook import add_trailers
from wakelog.store.commit_turns import CommitTurns, SessionCommits, link_all, turns_behind, turns_staged, worked_in
from wakelog.store.line_commits import LineCommit, commit_of_line

if TYPE_CHECKING:
    from wakelog.store import Store


class StoreGit:
    """Links commits to turns, and finds the turns behind a commit or a line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def link(self, folder: str = ".", *, notes: bool = False, dry_run: bool = False) -> list[SessionCommits]:
        """Does what `Session.files.link_commits` does for all sessions that worked in a folder's repository."""
        return link_all(self._store, folder, notes=notes, dry_run=dry_run)

    def worked_in(self, folder: str = ".") -> Callable[[Mapping[str, str]], bool]:
        """Returns a test for labels: whether a session worked in the repository of a folder, in any worktree."""
        return worked_in(folder)

    def turns_behind(self, revision: str, *, folder: str = ".") -> CommitTurns:
        """Lists the turns whose work a commit has, as far as they were linked. `folder` is in its repository."""
        return turns_behind(self._store, revision, folder)

    def turns_staged(self, folder: str = ".") -> list[str]:
        """Lists the turns, as `session@turn`, that changed a file which is staged in a folder's repository."""
        return turns_staged(self._store, folder)

    def add_trailers(self, message: Path, *, folder: str = ".") -> list[str]:
        """Adds a trailer for each of these turns to the file with a commit's message. The turns."""
        turns = turns_staged(self._store, folder)
        add_trailers(message, turns)
        return turns

    def commit_of_line(self, path: str, line: int) -> LineCommit | None:
        """Finds, by `git blame`, which session to ask about a line of a file; None where it is not committed."""
        return commit_of_line(self._store, path, line)
