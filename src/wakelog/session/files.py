"""`session.files`: capture what calls change on disk, compare it, and restore it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft
from wakelog.session.base import Base, Where, check_text
from wakelog.timeline.files import ChangedFiles, changed_files

if TYPE_CHECKING:
    # Imported when a verb needs them: most sessions never touch a file.
    from wakelog.files.capture import Capture
    from wakelog.files.checkout import Checkout, Worktree
    from wakelog.files.commit_links import CommitLink
    from wakelog.files.file_diff import FileDiff
    from wakelog.files.restore import RestoredFiles
    from wakelog.files.restore_plan import RestorePlan

CONTENT_FIELDS = ("before", "after", "missing")


class Files:
    """Captures, compares and restores files."""

    def __init__(self, session: Base[Any]) -> None:
        self._session = session

    def capture(
        self,
        *roots: str | os.PathLike[str],
        folder: str | os.PathLike[str] | None = None,
        max_file_bytes: int | None = None,
        max_total_bytes: int | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> Capture:
        """Starts recording what calls with effects change below these roots: contents before and after, also for
        changes made through a shell. Without roots, it watches the project's folder. Files that git ignores are left
        out.

        It reads every file once, at the start; docs/how-to/files-and-rewind.md says what that costs.
        """
        from wakelog.files.capture import Capture
        from wakelog.files.project import project_folder

        limits = {"max_file_bytes": max_file_bytes, "max_total_bytes": max_total_bytes}
        set_limits = {name: value for name, value in limits.items() if value is not None}
        whole = [folder if folder is not None else project_folder()]
        capture = Capture(roots or whole, folder=folder, exclude=self._own_files(), cache=cache, **set_limits)
        capture.before()
        self._session._runtime.capture = capture
        return capture

    def _own_files(self) -> list[str]:
        """Returns the store's own files, which change with every event."""
        from wakelog.files.restore_plan import rescue_home

        path = self._session.log.engine.abilities.path
        if path is None:
            return []
        stem = path.with_name(path.stem)
        return [str(path), f"{stem}.index.db", str(path.with_name("index.db")), rescue_home(self._session.log, "")]

    def record(
        self, /, path: str, change: Literal["created", "modified", "deleted"] = "modified", **fields: Any
    ) -> Seq:
        """Records a changed file. Other fields: `added`, `removed`, `before`, `after`, `action`, `why`."""
        check_text(path, "a file's path")
        return self._session._record(ev.FileChanged(path=path, change=change, **fields))

    def modified(self, last: int = 5, *, at: Where = None) -> ChangedFiles:
        """Lists the files changed in the last turns in view, with turns, tool, event and count. 0 means all turns."""
        return changed_files(self._session.log, last, at=self._session._upto(at))

    def diff(
        self, a: Where = None, b: Where = None, *, paths: Iterable[str] = (), other: Base[Any] | None = None
    ) -> list[FileDiff]:
        """Shows what changed in files from `a` to `b`, from the contents in the log; by default, in the last turn. One
        position alone means what it changed, as for `Session.diff`."""
        from wakelog.files.file_diff import file_diff

        session = self._session
        if b is None and other is None:
            from wakelog.timeline.selectors import resolve_change

            a, b = resolve_change(session.log, a)
        target = other or session
        return file_diff(session.log, 0 if a is None else session.seq(a), target.log, target.seq(b), paths=paths)

    def link_commits(self, folder: str = "", *, notes: bool = False, dry_run: bool = False) -> list[CommitLink]:
        """Finds the git commits that contain work of this session's turns, and records each link once. Git is only
        read. With `notes`, each commit also gets a git note, in `refs/notes/wakelog`: `session@turn`.

        `folder` is a folder of the repository; by default, where the session worked."""
        from wakelog.files.commit_links import find_links, repository_folder

        session = self._session
        place = repository_folder(session.log.part("labels"), folder)
        links = find_links(session.log, place)
        known = {(link.commit, link.turn) for link in self.commits()}
        new = [link for link in links if (link.commit, link.turn) not in known]
        if new and not dry_run:
            events = (
                ev.GitCommitLinked(
                    commit=link.commit,
                    turn=link.turn,
                    on=link.on,
                    known=link.known,
                    subject=link.subject,
                    repo=place,
                    occurred_at=link.at_s * 1_000_000,
                )
                for link in new
            )
            session.append(*(EventDraft(event, actor="runtime") for event in events))
        if notes and not dry_run:
            from wakelog.files.git_commits import add_note

            for link in links:
                add_note(place, link.commit, [f"{session}@{link.turn}"])
        return links

    def commits(self) -> list[CommitLink]:
        """Lists the git commits that are linked to turns of this session, in the order of linking."""
        from wakelog.files.commit_links import CommitLink

        entries = (e for e in self._session.log.entries() if e.kind == "git_commit.linked" and e.is_intact)
        return [
            CommitLink(
                str(e.body.get("commit", "")),
                str(e.body.get("subject", "")),
                e.body.get("turn", 0),
                e.body.get("on", 0),
                e.body.get("known", "derived"),
                e.happened_at // 1_000_000,
            )
            for e in entries
        ]

    def change(self, entry: Entry) -> FileDiff | None:
        """Shows what one `file.changed` event did, line by line; None if its contents were not captured."""
        if entry.kind != "file.changed" or not any(entry.body.get(n) is not None for n in CONTENT_FIELDS):
            return None
        from wakelog.files.file_diff import diff_sides
        from wakelog.files.file_history import read_change

        change = read_change(entry)
        return diff_sides(change.path, self._session.log, change.before, self._session.log, change.after)

    def plan(
        self, at: Where, *, paths: Iterable[str] = (), force: bool = False, roots: Sequence[str] = ()
    ) -> RestorePlan:
        """Returns what `restore` would do to each file, without changing any. Pass the plan to `restore` to carry it
        out. `roots` are the folders to restore in, the project's first; by default, where files were captured."""
        from wakelog.files.restore_plan import plan_restore
        from wakelog.session.undo import project_of

        log = self._session.log
        project = project_of(log, self._session._runtime.capture, roots)
        to = self._session.seq(at) or 1
        return plan_restore(log, to, folder=project.folder, roots=project.roots, paths=paths, force=force)

    def plan_diff(self, plan: RestorePlan) -> Iterator[FileDiff]:
        """Shows what a plan would change in each file on disk."""
        from wakelog.files.file_diff import step_diff

        found = (step_diff(self._session.log, step) for step in plan.of("restore", "delete"))
        return (diff for diff in found if diff is not None)

    def checkout(self, at: Where, folder: str | os.PathLike[str]) -> Checkout:
        """Writes the files that the session changed, as they were at a point, into a folder. The project's files are
        not touched, and nothing is recorded. The result lists files that were not captured."""
        from wakelog.files.checkout import check_out

        return check_out(self._session.log, self._session.seq(at), Path(folder))

    def worktree(self, at: Where, folder: str | os.PathLike[str], *, repository: str = "") -> Worktree:
        """Creates a folder with the project as it was at a point: a detached git worktree of the commit at which the
        session began, plus the captured files that it changed. No branch, index or HEAD of the repository is touched.
        `repository` is by default where the session worked."""
        from wakelog.files.checkout import make_worktree

        return make_worktree(self._session.log, self._session.seq(at), Path(folder), repository)

    def restore(
        self,
        at: Where | RestorePlan,
        *,
        paths: Iterable[str] = (),
        state: bool = False,
        force: bool = False,
        dry_run: bool = False,
        why: str = "",
    ) -> RestoredFiles:
        """Restores files to what they were at a point. Files edited since are kept and listed; with `force` they are
        replaced, and a copy is kept. With `state` the view goes back too, as with `rewind`. `undo` reverts it.

        With `dry_run` nothing is touched: the result holds the plan. Instead of a point you can pass a plan, which is
        carried out unchanged.
        """
        from wakelog.files.restore import RestoredFiles, restore
        from wakelog.files.restore_plan import RestorePlan

        plan = at if isinstance(at, RestorePlan) else self.plan(at, paths=paths, force=force)
        if dry_run:
            return RestoredFiles(plan, (), 0, plan.head)
        return restore(self._session.log, plan, rewind_to=plan.at if state else None, why=why)
