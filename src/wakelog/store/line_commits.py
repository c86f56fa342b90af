"""From a line of a committed file to the session that wrote it, by way of git.

`git blame` names the commit that brought the line. A session that left the file just as that commit has it can be asked
about the line itself. One that is linked to the commit in another way can be asked about its newest change of the file,
and one that only a note in git names about the turn.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.files.git_commits import BlamedLine, blame_line, contents_in, notes_of
from wakelog.files.git_head import git_labels, top_of
from wakelog.session import Session

if TYPE_CHECKING:
    from wakelog.store import Store

SESSIONS_MAX = 10
"""So many sessions that changed the file are looked at, the newest first."""


class LineCommit(msgspec.Struct, frozen=True):
    """The commit behind a line, and what to ask which session about it: a line, an event or a turn, as of `at`."""

    commit: str
    subject: str
    session: str
    """Empty: no session is known to be behind the commit."""
    what: str
    at: int = 0
    """0: as of now."""


def commit_of_line(store: Store, path: str, line: int) -> LineCommit | None:
    """How git leads from a line of a file on disk to a session; None where the line is not committed."""
    whole = os.path.realpath(path)
    folder = os.path.dirname(whole)
    if not os.path.isfile(whole) or not (top := top_of(folder)):
        return None
    blamed = blame_line(whole, line)
    if blamed is None:
        return None
    sessions = list(_changers(store, whole, top))
    [content] = contents_in(top, [(blamed.commit, blamed.path)])
    same = hashlib.sha256(content).hexdigest() if content is not None else ""
    for session, name in sessions:
        changes = [e for e in session.log.entries() if e.kind == "file.changed" and e.body.get("path") == name]
        left = [e.seq for e in changes if same and e.body.get("after_hash") == same]
        if left:
            return _line_commit(blamed, session.id, f"{name}:{blamed.line}", left[-1])
        turns = {link.turn for link in session.files.commits() if link.commit == blamed.commit}
        linked = [e.seq for e in changes if e.header.turn in turns]
        if linked:
            return _line_commit(blamed, session.id, f"e{linked[-1]}")
    for note in notes_of(top, blamed.commit):
        name, _, turn = note.rpartition("@")
        if turn.isdecimal() and name and store.is_open(name):
            return _line_commit(blamed, store.find(name), f"@{turn}")
    return _line_commit(blamed)


def _line_commit(blamed: BlamedLine, session: str = "", what: str = "", at: int = 0) -> LineCommit:
    return LineCommit(blamed.commit, blamed.subject, session, what, at)


def _changers(store: Store, whole: str, top: str) -> Iterator[tuple[Session[Any], str]]:
    """The sessions that changed a file of this repository, in whichever worktree, and what each calls it."""
    repo = git_labels(top).get("repo", "")
    from_top = os.path.relpath(whole, os.path.realpath(top))
    found = [f for path in (whole, from_top) for f in store.index.files_modified(path=path)]
    for each in sorted(found, key=lambda f: -f.at)[:SESSIONS_MAX]:
        session = store.resume(each.session)
        labels = session.log.part("labels")
        is_here = os.path.realpath(os.path.join(str(labels.get("project") or ""), each.path)) == whole
        if is_here or (labels.get("repo") == repo and each.path == from_top):
            yield session, each.path
