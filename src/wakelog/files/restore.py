"""Restores files to what they were at a point, and records that.

Each file is replaced atomically, and only if it is still what the plan saw; a file that changed meanwhile is left alone
and reported. If the process dies, every file is the old one or the new one, and running the restore again finishes it.
What the log does not have (somebody's own edits, a secret, a file that is too large) is copied to `rescue` beside the
store before it is replaced.

The changes are appended as changes by the user, in one commit with the rewind that belongs to them. So the log stays
true, and the rewind can be undone, files included. A restore without a rewind of the state appends a rewind to the
current head, which marks the operation.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import os
import stat
from collections.abc import Iterator
from typing import Literal

import msgspec

from wakelog.errors import NotAllowedError, UnavailableError
from wakelog.files.capture import as_value, is_below, line_counts, mode_text, printable
from wakelog.files.file_history import FileSide, content_of
from wakelog.files.manifest import MAX_FILE_BYTES
from wakelog.files.restore_plan import FileStep, RestorePlan
from wakelog.files.tree_writer import ChangedError, DiskEntry, OpenRoot, Parts
from wakelog.log import Log
from wakelog.log.retry import retry_on_moved_head
from wakelog.model import events as ev
from wakelog.model import machines
from wakelog.model.ids import Seq
from wakelog.model.records import EventDraft, Head


class FileResult(msgspec.Struct, frozen=True):
    """What was done to one file."""

    path: str
    did: Literal["restored", "deleted", "already", "kept"]
    why: str = ""
    saved: str = ""
    """Where a copy of the replaced file is kept."""


class RestoredFiles(msgspec.Struct, frozen=True):
    """What a restore did. `operation` is the rewind event that marks it; 0 if nothing was done."""

    plan: RestorePlan
    results: tuple[FileResult, ...]
    operation: Seq
    head: Seq

    @property
    def is_partial(self) -> bool:
        """Whether a requested change could not be made."""
        kept = {result.path for result in self.results if result.did == "kept"}
        return bool(self.plan.unseen) or any(s.path in kept and s.do != "ignored" for s in self.plan.steps)


def restore(
    log: Log,
    plan: RestorePlan,
    *,
    rewind_to: Seq | None = None,
    mode: str = "rewind",
    why: str = "",
) -> RestoredFiles:
    """Carries out a plan. With `rewind_to` the view is moved there in the same commit."""
    refuse_if_not_writable(log)
    run = _RestoreRun(log, plan)
    with run.locked():
        results = tuple(run.do(step) for step in run.in_order())
        if not run.drafts and rewind_to is None and mode == "rewind":
            return RestoredFiles(plan, results, 0, log.head().seq)
        head = _commit(log, plan.at, run.drafts, rewind_to, mode, why)
    return RestoredFiles(plan, results, head.seq, head.seq)


def refuse_if_not_writable(log: Log) -> None:
    """NotAllowedError if the restore could not be recorded; checked before anything is touched."""
    head = log.head()
    if not machines.allowed_in(head.status, "history.rewound"):
        raise NotAllowedError(
            f"{head} is {head.status}: restoring its files could not be recorded",
            kind=f"session-{head.status}",
            hint=f"wakelog reopen {head}",
            legal=machines.legal_in(head.status),
        )


def _commit(log: Log, at: Seq, drafts: list[EventDraft], rewind_to: Seq | None, mode: str, why: str) -> Head:
    if rewind_to is not None:
        return log.rewind(rewind_to, mode=mode, why=why, restored=drafts, files=at)

    def attempt() -> Head:
        here = log.head().seq
        return log.rewind(here, mode=mode, why=why, restored=drafts, files=at, expect=here)

    try:
        return retry_on_moved_head(log.id, "to record the restored files in", attempt)
    except UnavailableError as exc:
        if exc.kind != "too-busy":
            raise
        return log.append(*drafts)  # the changes are recorded, without a rewind that marks them


class _RestoreRun:
    """One running restore."""

    def __init__(self, log: Log, plan: RestorePlan) -> None:
        self._log = log
        self._plan = plan
        self.drafts: list[EventDraft] = []
        self._trees: dict[str, OpenRoot] = {}
        self._stack = contextlib.ExitStack()
        self._rescue: tuple[OpenRoot, Parts] | None = None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        roots = dict.fromkeys([self._plan.folder, *(s.place.root for s in self._plan.steps if s.place is not None)])
        with self._stack:
            for root in roots:
                self._trees[root] = self._stack.enter_context(OpenRoot(root))
            self._stack.enter_context(self._trees[self._plan.folder].locked())
            places = [step.place for step in self._plan.steps if step.place is not None]
            for root, folder in dict.fromkeys((place.root, place.parts[:-1]) for place in places):
                self._trees[root].clean((*folder, ""))
            yield

    def in_order(self) -> list[FileStep]:
        """Deletes come first, the deepest paths before the others: a restored folder may replace a file."""
        deletes = [step for step in self._plan.steps if step.do == "delete"]
        deletes.sort(key=lambda step: -step.path.count("/"))
        return deletes + [step for step in self._plan.steps if step.do != "delete"]

    def do(self, step: FileStep) -> FileResult:
        if step.do in ("conflict", "unknown", "ignored"):
            return FileResult(step.path, "kept", step.why)
        assert step.place is not None
        assert step.then is not None
        assert step.disk is not None
        tree, parts = self._trees[step.place.root], step.place.parts
        before = tree.read(parts, MAX_FILE_BYTES) if step.disk.exists else None
        content, missing = content_of(self._log, step.then) if step.then.exists else (b"", "")
        if missing:
            return FileResult(step.path, "kept", missing)
        if step.do == "already":
            self._record_already(step, content)
            return FileResult(step.path, "already", step.why)
        try:
            saved = self._save(step, tree, parts, before)
            self._write(tree, parts, step.then, content, step.disk)
        except ChangedError as exc:
            return FileResult(step.path, "kept", str(exc))
        self._record(step.path, *self._replaced(step.disk, before, saved), step.then, content)
        return FileResult(step.path, "restored" if step.then.exists else "deleted", step.why, saved)

    def _write(self, tree: OpenRoot, parts: Parts, then: FileSide, content: bytes, disk: DiskEntry) -> None:
        if not then.exists:
            tree.delete(parts, disk)
        elif then.is_link:
            tree.link(parts, os.fsdecode(content), disk)
        else:
            tree.write(parts, content, _mode(then, disk), disk)

    def _save(self, step: FileStep, tree: OpenRoot, parts: Parts, before: bytes | None) -> str:
        """Copies the file to the rescue folder if the log cannot give it back. Returns the copy's path."""
        if not step.disk or not step.disk.exists:
            return ""
        if not step.rescue and before is not None and not self._is_secret(before):
            return ""
        try:
            rescue, folder = self._open_rescue()
        except OSError as exc:
            raise ChangedError(f"no copy could be kept: {exc.strerror or exc}") from exc
        name = (*folder, *(part for part in step.path.split("/") if part))
        tree.save(parts, rescue, name)
        return os.path.join(rescue.root, *name)

    def _open_rescue(self) -> tuple[OpenRoot, Parts]:
        """The folder for the copies of this restore, created for the first copy."""
        if self._rescue is None:
            home = self._plan.rescue
            os.makedirs(home, mode=0o700, exist_ok=True)
            tree = self._stack.enter_context(OpenRoot(home))
            when = dt.datetime.fromtimestamp(self._log.clock() / 1e6, tz=dt.UTC).strftime("%Y%m%dT%H%M%SZ")
            taken = os.listdir(home)
            name = next(name for n in range(1, 10_000) if (name := f"{when}-{n}" if n > 1 else when) not in taken)
            if ".gitignore" not in taken:
                # The folder tells git to ignore it, so git's own files are not touched.
                tree.write((".gitignore",), b"*\n", 0o600, DiskEntry("none"))
            self._rescue = tree, (name,)
        return self._rescue

    def _is_secret(self, content: bytes) -> bool:
        if self._log.redact is None:
            return False
        return bool(self._log.redact(ev.FileChanged(path="x", before=as_value(content)))[1])

    def _replaced(self, disk: DiskEntry, before: bytes | None, saved: str) -> tuple[FileSide, bytes | None]:
        """The replaced file as it is to be recorded. A secret is not passed to the log; the rescue copy has it."""
        mode = mode_text(disk.mode) if disk.exists else ""
        if not disk.exists or (before is not None and not self._is_secret(before)):
            return FileSide(disk.exists, disk.hash, mode), before
        why = "too large" if before is None else "it holds a secret"
        place = os.path.relpath(saved, self._plan.folder) if is_below(saved, self._plan.folder) else saved
        return FileSide(True, disk.hash if before is None else "", mode, f"{why}; a copy is kept in {place}"), None

    def _record_already(self, step: FileStep, content: bytes) -> None:
        """Records a file that is restored already but not in the log: perhaps a restore died before its commit."""
        now, then = step.now, step.then
        assert now is not None
        assert then is not None
        if (now.exists, now.hash, now.mode) != (then.exists, then.hash, then.mode):
            before, missing = content_of(self._log, now) if now.exists else (b"", "")
            self._record(step.path, now, None if missing or not now.exists else before, then, content)

    def _record(self, path: str, was: FileSide, before: bytes | None, then: FileSide, content: bytes) -> None:
        after = content if then.exists else None
        added, removed = line_counts(before, after)
        change: Literal["created", "modified", "deleted"] = (
            "deleted" if not then.exists else "modified" if was.exists else "created"
        )
        event = ev.FileChanged(
            path=path,
            change=change,
            added=added,
            removed=removed,
            before=as_value(before),
            after=as_value(after),
            before_hash=was.hash,
            after_hash=hashlib.sha256(content).hexdigest() if then.exists else "",
            before_mode=was.mode,
            after_mode=then.mode,
            missing={"before": was.missing} if was.exists and before is None else {},
            folder="" if path.startswith("/") else printable(self._plan.folder)[0],
            why=f"restored to what it was at event {self._plan.at}",
        )
        self.drafts.append(EventDraft(event, actor="user"))


def _mode(then: FileSide, disk: DiskEntry) -> int:
    """The permissions of a restored file: as recorded, else those of the file it replaces, else the default."""
    with contextlib.suppress(ValueError):
        return int(then.mode, 8) & 0o777
    if disk.kind == "file":
        return stat.S_IMODE(disk.mode) & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
