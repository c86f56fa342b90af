"""Finds the session that wrote a line of a file, among all sessions that changed the file.

The line is followed back in time through the recorded changes, from the file on disk to the change that wrote it. If
that finds none, the commit that `git blame` names may lead to a session.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.errors import NotFoundError
from wakelog.model.ids import Seq
from wakelog.provenance.line_origin import LineChange, LineFound, follow_line
from wakelog.provenance.targets import Target
from wakelog.provenance.why import Why
from wakelog.session import Session
from wakelog.store.file_sessions import FileSession, sessions_of_file
from wakelog.store.line_commits import LineCommit, commit_of_line

if TYPE_CHECKING:
    from wakelog.store import Store

SESSIONS_MAX = 100
"""How many sessions that changed the file are checked, the newest first."""
SIZE_MAX = 4_000_000
"""A larger file on disk is not read; the newest recorded content is used instead."""
PAGE = 1000


class LineWriter(msgspec.Struct, frozen=True):
    """Which session to ask about a line of a file, and what to ask: the line or its change, as of an event."""

    session: Session[Any]
    what: str
    at: Seq | None
    """None means now."""
    subject: str
    """The line, with the path that the session uses."""
    found: LineFound | None
    """How recorded changes led here; None if only git did."""
    git: LineCommit | None
    """The commit of the line, if git knows one."""

    @property
    def change(self) -> str:
        """What to ask about the change instead of the line."""
        return f"e{self.at}" if self.at else self.what

    def answer_about_line(self, answer: Why) -> Why:
        """Turns the session's answer into one about the line. If the change did not write the line, the answer is
        empty."""
        if self.found is None:
            return answer
        target = Target(self.subject, "line", answer.target.seqs, self.found.way, self.found.note)
        if self.found.seq:
            return msgspec.structs.replace(answer, target=target)
        return Why(answer.session, answer.at, msgspec.structs.replace(target, seqs=()), None, (), (), (), 0, ())


def line_writer(store: Store, path: str, line: int) -> LineWriter | None:
    """Finds the session that wrote line `line` (from 1) of a file; None if neither a recorded change nor git knows the
    file."""
    known = sessions_of_file(store, path)
    blamed = commit_of_line(store, path, line, known)
    changes, names = _changes(store, known)
    found = follow_line(changes, path, line, _on_disk(path)) if changes else None
    if (found is None or found.way != "lines") and blamed is not None and blamed.session:
        return LineWriter(store.resume(blamed.session), blamed.what, blamed.at or None, "", None, blamed)
    if found is None and blamed is not None:
        raise NotFoundError(
            f'no session changed {path}; git has line {line} of it from {blamed.commit[:10]} "{blamed.subject}"',
            kind="nothing-to-trace",
            hint=f"git show {blamed.commit[:10]}",
        )
    if found is None:
        return None
    change, name = changes[found.place], names[found.place]
    if found.way == "older" and len(known) > 1:
        note = f"the line is older than all {len(known)} sessions that changed this file, first in {change.name}"
        found = msgspec.structs.replace(found, note=note)
    what = f"{name}:{found.line}" if found.seq and found.line else f"e{change.seq}"
    return LineWriter(store.resume(change.log.id), what, change.seq, f"{name}:{line}", found, blamed)


def _changes(store: Store, known: list[FileSession]) -> tuple[list[LineChange], list[str]]:
    """Returns all changes of the file in view, oldest first, and the path that each change's session uses."""
    rows: list[tuple[int, LineChange, str]] = []
    for changed in known[:SESSIONS_MAX]:
        log, after = changed.session.log, ""
        prefix = f"{changed.session}@" if len(known) > 1 else ""
        while True:
            # Events that a fork shares with its parent are read from the parent.
            page = store.index.events(session=log.id, kinds="file.changed", lineage=False, after=after, limit=PAGE)
            rows += [
                (row.occurred_at, LineChange(log, row.seq, f"{prefix}e{row.seq}"), changed.path)
                for row in page
                if row.path == changed.path
            ]
            if not (after := page.next):
                break
    rows.sort(key=lambda row: (row[0], row[1].log.id, row[1].seq))
    return [change for _, change, _ in rows], [path for _, _, path in rows]


def _on_disk(path: str) -> str | None:
    try:
        if os.path.getsize(path) > SIZE_MAX:
            return None
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, ValueError):
        return None
