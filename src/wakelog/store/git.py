"""`store.git`: git commits and the turns whose work they contain, for all sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from wakelog.files.commit_links import CommitLink, repository_folder
from wakelog.files.git_commits import GitCommit, find_commit, notes_of
from wakelog.files.git_head import git_labels
from wakelog.files.git_hook import add_trailers, committed_until, staged_files, trailers_of
from wakelog.model.ids import SessionId
from wakelog.store.line_commits import LineCommit, commit_of_line
from wakelog.timeline.turn_words import TurnWords, words_of_turn

if TYPE_CHECKING:
    from wakelog.store import Store

TURNS_BACK = 20
"""How many turns to search for changes that are staged now."""
CHANGES_BACK = 1000
"""How many file changes to search."""
TIMEOUT_S = 30.0
_LINKED = "select session, seq from events where kind = 'git_commit.linked' and key = ? and gone = '' order by 1, 2"


class CommitTurn(msgspec.Struct, frozen=True):
    """A turn whose work a commit contains. `known` says how that is known; `noted` means only a git note or the
    commit's message says so."""

    session: str
    name: str
    turn: int
    known: str
    on: int = 0
    words: TurnWords | None = None
    """What the turn was asked for."""
    is_here: bool = True
    """Whether the session is in this store."""


class CommitTurns(msgspec.Struct, frozen=True):
    """A commit and the turns whose work it contains."""

    commit: GitCommit
    turns: tuple[CommitTurn, ...]


class SessionCommits(msgspec.Struct, frozen=True):
    """A session and the commits that contain its work."""

    session: SessionId
    name: str
    links: tuple[CommitLink, ...]


class StoreGit:
    """Links commits to turns, and finds the turns behind a commit or a line."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def link(self, folder: str = ".", *, notes: bool = False, dry_run: bool = False) -> list[SessionCommits]:
        """Runs `Session.files.link_commits` for all sessions that worked in a folder's repository. Sessions without a
        commit are left out."""
        place = repository_folder({}, folder)
        out = []
        # List all first: linking writes, and that moves a session to the front of the list.
        for id, name in list(self._sessions_in(place)):
            links = self._store.resume(id).files.link_commits(place, notes=notes, dry_run=dry_run)
            if links:
                out.append(SessionCommits(id, name, tuple(links)))
        return out

    def worked_in(self, folder: str = ".") -> Callable[[Mapping[str, str]], bool]:
        """Returns a function of labels that says whether a session worked in the repository of a folder: in any
        worktree, or below its main folder."""
        main = git_labels(folder).get("repo", os.path.realpath(folder))

        def is_there(labels: Mapping[str, str]) -> bool:
            place = labels.get("repo") or labels.get("project") or ""
            return bool(place) and f"{os.path.realpath(place)}/".startswith(f"{main}/")

        return is_there

    def turns_behind(self, revision: str, *, folder: str = ".") -> CommitTurns:
        """Lists the turns whose work a commit contains: linked ones, and those named by git notes or the commit's
        message. `folder` is a folder of the repository."""
        commit = find_commit(folder, revision)
        results: dict[tuple[str, int], CommitTurn] = {}
        for session, seq in self._store.index.query_sql(_LINKED, [commit.hash], timeout_s=TIMEOUT_S).rows:
            log = self._store.resume(session).log
            body = log.entry(seq).body
            turn = int(body.get("turn", 0))
            results[session, turn] = CommitTurn(
                session,
                log.head().name,
                turn,
                body.get("known", "derived"),
                body.get("on", 0),
                words_of_turn(log, turn),
            )
        for line in (*notes_of(folder, commit.hash), *trailers_of(folder, commit.hash)):
            name, _, number = line.rpartition("@")
            if not name or not number.isdecimal():
                continue
            is_here = self._store.is_open(name)
            session = self._store.find(name) if is_here else name
            if (session, int(number)) not in results:
                words = words_of_turn(self._store.resume(session).log, int(number)) if is_here else None
                results[session, int(number)] = CommitTurn(session, name, int(number), "noted", 0, words, is_here)
        return CommitTurns(commit, tuple(results.values()))

    def turns_staged(self, folder: str = ".") -> list[str]:
        """Lists the turns, as `session@turn`, that changed a staged file since its last commit."""
        staged = staged_files(folder)
        until: dict[str, int] = {}
        out: list[str] = []
        for id, name in self._sessions_in(repository_folder({}, folder)) if staged else ():
            labels = self._store.resume(id).log.part("labels")
            base = str(labels.get("project") or labels.get("repo") or folder)
            turns = set()
            page = self._store.index.events(
                session=id, kinds="file.changed", last_turns=TURNS_BACK, newest_first=True, limit=CHANGES_BACK
            )
            for change in page:
                file = os.path.realpath(os.path.join(base, change.path))
                if file not in staged:
                    continue
                if file not in until:
                    until[file] = committed_until(file)
                if change.occurred_at >= until[file]:
                    turns.add(change.turn)
            out += [f"{name or id}@{turn}" for turn in sorted(turns) if turn]
        return out

    def add_trailers(self, message: Path, *, folder: str = ".") -> list[str]:
        """Adds a trailer for each of these turns to the file with a commit's message, and returns the turns."""
        turns = self.turns_staged(folder)
        add_trailers(message, turns)
        return turns

    def commit_of_line(self, path: str, line: int) -> LineCommit | None:
        """Finds with `git blame` which session to ask about a line of a file; None if the line is not committed."""
        return commit_of_line(self._store, path, line, self._store.changers(path))

    def _sessions_in(self, folder: str) -> Iterator[tuple[SessionId, str]]:
        is_there = self.worked_in(folder)
        for info in self._store.index.every_session():
            if is_there(info.labels):
                yield info.id, info.name
