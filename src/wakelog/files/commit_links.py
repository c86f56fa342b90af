"""Which git commits contain the work of which turns.

There are three kinds of evidence, the strongest first. `recorded`: a recorded call made the commit, and its output
names it. `matched`: the commit has a file exactly as a turn left it (same hash), in a commit by anyone. `derived`: the
commit was made during a turn and has a file that the turn had changed before; that is likely, not certain.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from wakelog.errors import NotFoundError
from wakelog.files.git import repository_of
from wakelog.files.git_commits import GitCommit, commits_between, contents_in
from wakelog.log import Log
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.json_fields import as_text
from wakelog.model.values import Value

LATER_S = 14 * 24 * 3600
"""How long after the session's last event to look for commits of its work."""
_COMMAND = re.compile(r"\bgit\b[^|;&\n]*\bcommit\b")
_MADE = re.compile(r"^\[[^\]\n]*?\b(?P<hash>[0-9a-f]{7,40})\] ", re.MULTILINE)
_ANSWERS = ("action.recorded", "action.succeeded")


class CommitLink(msgspec.Struct, frozen=True):
    """A commit and a turn whose work it contains. `on` is the event that shows it."""

    commit: str
    subject: str
    turn: int
    on: Seq
    known: Literal["recorded", "matched", "derived"]
    at_s: int = 0
    """When it was committed."""


class _Change(msgspec.Struct, frozen=True):
    seq: Seq
    turn: int
    at_us: int
    path: str
    """From the top of the repository."""
    after: str


class _Work:
    """What a session did that commits can show."""

    def __init__(self) -> None:
        self.spans: dict[int, tuple[int, int]] = {}
        self.changes: list[_Change] = []
        self.made: list[tuple[str, int, Seq]] = []
        """Commit hashes, as abbreviated in outputs, with turn and event."""


def repository_folder(labels: dict[str, Any], folder: str = "") -> str:
    """The folder in which to run git for a session: the given one, else its repository, else its project."""
    wanted = [folder] if folder else [str(labels.get(name) or "") for name in ("repo", "project")]
    for path in filter(None, wanted):
        if os.path.isdir(path) and (repository_of(path) is not None or os.path.isfile(f"{path}/HEAD")):
            return path
    named = next(filter(None, wanted), "")
    raise NotFoundError(
        f"there is no git repository at {named}" if named else "the session does not say which folder it worked in",
        kind="no-repository",
        hint="name the folder of the repository with --repo",
    )


def find_links(log: Log, folder: str) -> list[CommitLink]:
    """The links between the turns of a session and the commits of the repository at a folder, in order of time."""
    labels = log.part("labels")
    work = _read_work(log, _roots(labels, folder))
    if not work.spans:
        return []
    since = min(began for began, _ in work.spans.values()) // 1_000_000
    until = max(ended for _, ended in work.spans.values()) // 1_000_000 + LATER_S
    commits = commits_between(folder, since, until)
    matched = dict(_match_contents(folder, commits, work))
    return [
        CommitLink(commit.hash, commit.subject, turn, on, known, commit.at_s)
        for commit in commits
        for turn, (on, known) in sorted(_turns_in(commit, work, matched).items())
    ]


def _turns_in(
    commit: GitCommit, work: _Work, matched: dict[tuple[str, int], Seq]
) -> dict[int, tuple[Seq, Literal["recorded", "matched", "derived"]]]:
    results: dict[int, tuple[Seq, Literal["recorded", "matched", "derived"]]] = {}
    for turn, (began, ended) in work.spans.items():
        made = next((seq for hash, at, seq in work.made if at == turn and commit.hash.startswith(hash)), 0)
        if made:
            results[turn] = (made, "recorded")
        elif same := matched.get((commit.hash, turn), 0):
            results[turn] = (same, "matched")
        elif began // 1_000_000 <= commit.at_s <= ended // 1_000_000:
            before = (c for c in work.changes if c.turn == turn and c.at_us // 1_000_000 <= commit.at_s)
            touched = [c.seq for c in before if c.path in commit.paths]
            if touched:
                results[turn] = (touched[-1], "derived")
    return results


def _match_contents(folder: str, commits: list[GitCommit], work: _Work) -> Iterator[tuple[tuple[str, int], Seq]]:
    """(commit, turn) where the first commit after a change has the file exactly as the change left it."""
    by_path: dict[str, list[_Change]] = {}
    for change in work.changes:
        if change.after:
            by_path.setdefault(change.path, []).append(change)
    wanted = [
        (commit, path)
        for commit in commits
        for path in commit.paths
        if any(change.at_us // 1_000_000 <= commit.at_s for change in by_path.get(path, ()))
    ]
    contents = contents_in(folder, [(commit.hash, path) for commit, path in wanted])
    taken: set[Seq] = set()
    for (commit, path), content in zip(wanted, contents, strict=True):
        hash = hashlib.sha256(content).hexdigest() if content is not None else ""
        same = [c for c in by_path[path] if c.after == hash and c.at_us // 1_000_000 <= commit.at_s]
        if same and same[-1].seq not in taken:
            taken.update(change.seq for change in same)
            yield (commit.hash, same[-1].turn), same[-1].seq


def _read_work(log: Log, roots: list[str]) -> _Work:
    work, fork = _Work(), log.head().fork
    commands: set[str] = set()
    labels = log.part("labels")
    for entry in log.entries(after=fork.at if fork else 0):
        turn, body, at = entry.header.turn, entry.body, entry.happened_at
        if not turn or not body:
            continue
        began, ended = work.spans.get(turn, (at, at))
        work.spans[turn] = (min(began, at), max(ended, at))
        if entry.kind == "file.changed":
            base = str(body.get("folder") or labels.get("project") or "")
            path = _from_top(os.path.join(base, str(body.get("path", ""))), roots)
            after = body.get("after_hash")
            work.changes.append(_Change(entry.seq, turn, at, path, as_text(after)))
            continue
        action = str(body.get("action", ""))
        if any(_COMMAND.search(text) for text in _texts(log, entry, "input")):
            commands.add(action)
        if entry.kind in _ANSWERS and action in commands:
            outputs = _texts(log, entry, "output")
            work.made += [(m["hash"], turn, entry.seq) for text in outputs for m in _MADE.finditer(text)]
    return work


def _texts(log: Log, entry: Entry, field: str) -> Iterator[str]:
    """All texts inside a field's value; nothing if it was erased."""
    if entry.body.get(field) is None:
        return
    try:
        queue: list[Value] = [log.value(entry, entry.body[field])]
    except NotFoundError:
        return
    while queue:
        value = queue.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            queue += value.values()
        elif isinstance(value, list):
            queue += value


def _roots(labels: dict[str, Any], folder: str) -> list[str]:
    """Folders that recorded paths may be relative to. A worktree may be inside the main one, so the session's own comes
    first. The session's folder itself comes last, for a worktree that no longer exists."""
    project = str(labels.get("project") or "")
    own = repository_of(project) if project and os.path.isdir(project) else None
    repository = repository_of(folder)
    tops = [own.top if own else "", repository.top if repository else "", str(labels.get("repo") or ""), project]
    return [os.path.realpath(top) for top in dict.fromkeys(tops) if top]


def _from_top(path: str, roots: list[str]) -> str:
    """A path relative to the first root that contains it."""
    absolute = os.path.realpath(path)
    for root in roots:
        if absolute.startswith(root + os.sep):
            return absolute[len(root) + 1 :]
    return absolute
