"""Finds the session that wrote a line of a committed file, with the help of git.

`git blame` names the commit of the line. If a session left the file exactly as in that commit, we can ask it about the
line itself. If a session is linked to the commit, we ask about its newest change of the file. If only a git note names
a session, we ask about the turn.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from wakelog.files.git_commits import BlamedLine, blame_line, contents_in, notes_of
from wakelog.files.git_head import top_of
from wakelog.store.file_sessions import FileSession

if TYPE_CHECKING:
    from wakelog.store import Store

SESSIONS_MAX = 10
"""How many sessions that changed the file are checked, the newest first."""


class LineCommit(msgspec.Struct, frozen=True):
    """The commit of a line, and what to ask which session about it: a line, an event or a turn, as of `at`."""

    commit: str
    subject: str
    session: str
    """Empty if no session is linked to the commit."""
    what: str
    at: int = 0
    """0 means now."""


def commit_of_line(store: Store, path: str, line: int, known: Sequence[FileSession]) -> LineCommit | None:
    """Finds the commit of a line, and a session for it: one of those that changed the file, or one that a git note
    names. None if the line is not committed."""
    whole = os.path.realpath(path)
    folder = os.path.dirname(whole)
    if not os.path.isfile(whole) or not (top := top_of(folder)):
        return None
    blamed = blame_line(whole, line)
    if blamed is None:
        return None
    [content] = contents_in(top, [(blamed.commit, blamed.path)])
    same = hashlib.sha256(content).hexdigest() if content is not None else ""
    for candidate in known[:SESSIONS_MAX]:
        session, name = candidate.session, candidate.path
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
