"""Finds the sessions that changed a file.

Sessions name a file differently: relative to their folder, or by its absolute path. Worktrees of one repository have
the same file in several places.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.files.git_head import git_labels, top_of
from wakelog.session import Session

if TYPE_CHECKING:
    from wakelog.store import Store


class FileSession(msgspec.Struct, frozen=True):
    """A session that changed a file, what it calls the file, and when it last changed it."""

    session: Session[Any]
    path: str
    at: int


def sessions_of_file(store: Store, path: str) -> list[FileSession]:
    """Lists the sessions that changed a file, the newest first. The path may be relative to this folder or to the
    session's, or the end of a known path. InvalidInputError if it can be several files."""
    whole = os.path.realpath(path)
    top = top_of(os.path.dirname(whole)) if os.path.isfile(whole) else ""
    from_top = os.path.relpath(whole, os.path.realpath(top)) if top else path
    repo = git_labels(top).get("repo", "") if top else ""
    asked = dict.fromkeys((os.path.abspath(path), whole, path, from_top))
    rows = {(f.session, f.path): f for p in asked for f in store.index.files_modified(path=p)}
    by_file: dict[str, list[FileSession]] = {}
    here: list[FileSession] = []
    for row in sorted(rows.values(), key=lambda f: -f.at):
        session = store.resume(row.session)
        labels = session.log.part("labels")
        file = os.path.realpath(os.path.join(str(labels.get("project") or ""), row.path))
        found = FileSession(session, row.path, row.at)
        is_twin = bool(repo) and labels.get("repo") == repo and row.path == from_top
        (here if file == whole or is_twin else by_file.setdefault(file, [])).append(found)
    if here:
        return here
    sessions = [change for changes in by_file.values() for change in changes if change.path == path]
    if len(by_file) > 1 and not sessions:
        raise InvalidInputError(
            f"{path} may be any of {len(by_file)} files that sessions changed: {', '.join([*by_file][:3])}"
            + (" …" if len(by_file) > 3 else ""),
            kind="ambiguous-file",
            hint=f"give more of its path, or name the session: wakelog why SESSION {path}",
        )
    return next((changes for changes in by_file.values() if not sessions or sessions[0] in changes), [])
