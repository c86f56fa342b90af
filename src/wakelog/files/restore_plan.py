"""Plans what restoring a point would do to each file on disk, before anything is done.

Every file that was changed after the point counts, whether the change is in view or not. The plan compares what the
file was then, what it is now according to the log, and what it really is. It is replaced only if the last two agree. If
it was edited since, it is a conflict and stays as it is. If the log does not have the old content, it is unknown,
with the reason. Calls whose changes were not captured are listed too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

import msgspec

from wakelog.diff.rewind_preview import Beyond, effects_between
from wakelog.errors import NotFoundError
from wakelog.files.capture import as_value, line_counts
from wakelog.files.file_history import FilePast, FileSide, RecordedChange, content_of, file_pasts, text_as_recorded
from wakelog.files.git_head import git_labels
from wakelog.files.tree_writer import DiskEntry, FilePlace, OpenRoot, locate
from wakelog.log import Log
from wakelog.log.admission import Redact
from wakelog.log.reader import Entry
from wakelog.model import events as ev
from wakelog.model.calls import BEGIN_KINDS, END_KINDS, Call, Calls
from wakelog.model.ids import Seq, SessionId
from wakelog.model.values import Value
from wakelog.redaction.values import REDACTED

Do = Literal["restore", "delete", "already", "conflict", "unknown", "ignored"]
_COMMAND_FIELDS = ("command", "cmd", "script", "args", "argv")
_COMMAND_MAX = 200


class FileStep(msgspec.Struct, frozen=True):
    """What would be done to one file.

    `restore` and `delete` change it. `already` means that it is already right. The others leave it alone: `conflict`,
    it was edited; `unknown`, the log does not have its content; `ignored`, git ignores it, so it was not captured.
    """

    path: str
    do: Do
    why: str = ""
    added: int = 0
    removed: int = 0
    turn: int = 0
    """The turn of the first change after the point; for a conflict, of the last recorded change."""
    by: str = ""
    """The call that made this change, if known."""
    rescue: bool = False
    """Whether the file on disk is copied to the rescue folder first, because the log does not have its content."""
    place: FilePlace | None = None
    then: FileSide | None = None
    now: FileSide | None = None
    """What it is now, according to the log."""
    disk: DiskEntry | None = None

    @property
    def writes(self) -> bool:
        return self.do in ("restore", "delete")


class RestorePlan(msgspec.Struct, frozen=True):
    """Everything a person needs to know before files are touched."""

    session: SessionId
    at: Seq
    head: Seq
    folder: str
    roots: tuple[str, ...]
    steps: tuple[FileStep, ...]
    unseen: tuple[Beyond, ...]
    """Calls with effects after the point whose file changes were not captured."""
    commands: dict[str, str]
    """A description of each such call, by its action."""
    rescue: str
    """The folder for copies of what the log does not have."""
    git: str
    """The commit of HEAD, which a restore does not change; empty outside a repository."""

    def of(self, *what: Do) -> tuple[FileStep, ...]:
        return tuple(step for step in self.steps if step.do in what)

    @property
    def is_partial(self) -> bool:
        """Whether a requested change cannot be made."""
        return bool(self.of("conflict", "unknown") or self.unseen)


def plan_restore(
    log: Log,
    at: Seq,
    *,
    folder: str,
    roots: Iterable[str] = (),
    paths: Iterable[str] = (),
    force: bool = False,
) -> RestorePlan:
    """What restoring files to a point would do. With `paths`, only for these files and files below these folders; with
    `force`, files that somebody edited are replaced as well, after a copy is made."""
    folder = os.path.realpath(folder)
    if not os.path.isdir(folder):
        raise NotFoundError(f"there is no folder {folder}", kind="folder-not-found", hint="name the project's folder")
    real = tuple(os.path.realpath(root) for root in roots) or (folder,)
    only = tuple(paths)
    head = log.head().seq
    calls = _Calls(log, at)
    steps = _Planner(log, folder, real, force, calls).plan([*file_pasts(log, at, upto=head, paths=only).values()])
    unseen = () if only else calls.unseen(at, head)
    return RestorePlan(
        session=log.id,
        at=at,
        head=head,
        folder=folder,
        roots=real,
        steps=tuple(steps),
        unseen=unseen,
        commands={call.action: calls.describe(call.action) for call in unseen},
        rescue=rescue_home(log, folder),
        git=git_labels(folder).get("commit", ""),
    )


def rescue_home(log: Log, folder: str) -> str:
    """The folder for rescue copies: beside a store on this disk, else below the project folder."""
    path = log.engine.abilities.path
    home = os.path.dirname(os.path.abspath(path)) if path is not None else os.path.join(folder, ".wakelog")
    return os.path.join(home, "rescue")


class _Planner:
    """Decides for each file what to do."""

    def __init__(self, log: Log, folder: str, roots: tuple[str, ...], force: bool, calls: _Calls) -> None:
        self._log = log
        self._folder = folder
        self._roots = roots
        self._force = force
        self._calls = calls

    def plan(self, pasts: list[FilePast]) -> list[FileStep]:
        steps = [self._step(past) for past in pasts]
        # A symbolic link created after the point may have replaced a folder; it is deleted first.
        deleted = {step.place for step in steps if step.do == "delete"}
        steps = [self._retry_blocked(step, past, deleted) for step, past in zip(steps, pasts, strict=True)]
        return [self._check_room(step, deleted) for step in steps]

    def _retry_blocked(self, step: FileStep, past: FilePast, deleted: set[FilePlace | None]) -> FileStep:
        """Decides again about a file below a symbolic link that will be deleted."""
        if step.disk is None or not step.disk.blocked or step.place is None:
            return step
        if FilePlace(step.place.root, step.disk.blocked) not in deleted:
            return step
        return self._decide(past, step.place, DiskEntry("none"))

    def _check_room(self, step: FileStep, deleted: set[FilePlace | None]) -> FileStep:
        """A folder may be where a file was. It can be replaced only if everything in it is deleted."""
        if step.do != "restore" or step.place is None or (step.disk is not None and step.disk.exists):
            return step
        root = step.place.root
        with OpenRoot(root) as tree:
            other = next((p for p in tree.below(step.place.parts) if FilePlace(root, p) not in deleted), None)
        if other is None:
            return step
        why = f"a folder is there now, and {'/'.join(other)} in it would be lost"
        return msgspec.structs.replace(step, do="conflict", why=why, added=0, removed=0)

    def _step(self, past: FilePast) -> FileStep:
        if any(change.is_ignored for change in past.later):
            return self._unknown(past, "ignored by git, content not captured", do="ignored")
        place = locate(past.path, self._folder, self._roots)
        if isinstance(place, str):
            return self._unknown(past, place)
        with OpenRoot(place.root) as tree:
            disk = tree.look(place.parts)
        if disk.blocked and not past.then.exists:
            disk = DiskEntry("none")  # it should not exist, and the file behind a link is another file
        if disk.blocked:
            step = self._unknown(past, "a folder in its path is a symbolic link")
            return msgspec.structs.replace(step, place=place, disk=disk)
        return self._decide(past, place, disk)

    def _decide(self, past: FilePast, place: FilePlace, disk: DiskEntry) -> FileStep:
        """The central rule: restore only content that the log has, and replace only content that the log has."""
        then = past.then
        content, missing = content_of(self._log, then) if then.exists else (b"", "")
        if then.missing or missing:
            return self._unknown(past, missing or then.missing)
        if then.is_link and not _stays_inside(place, os.fsdecode(content)):
            return self._unknown(past, "it was a symbolic link that points outside")
        if _is_at(disk, then):
            return self._make_step(past, "already", place, disk, "it is already restored")
        conflict, is_uncertain = self._find_conflict(past, disk, place)
        if conflict and not self._force:
            return self._make_step(past, "conflict", place, disk, conflict)
        if disk.kind == "other":
            return self._make_step(past, "conflict", place, disk, disk.missing)
        now = content_of(self._log, past.now)[0] if disk.exists and past.now.exists else None
        added, removed = line_counts(now, content if then.exists else None) if not conflict else (0, 0)
        why = conflict or (f"created {_point(past.later[0])}" if not past.later[0].before.exists else "")
        step = self._make_step(past, "restore" if then.exists else "delete", place, disk, why)
        rescue = disk.exists and bool(conflict or is_uncertain or past.now.missing)
        return msgspec.structs.replace(step, added=added, removed=removed, rescue=rescue)

    def _find_conflict(self, past: FilePast, disk: DiskEntry, place: FilePlace) -> tuple[str, bool]:
        """Why a file may have somebody's own edits (empty if not), and whether that is uncertain."""
        last = past.later[-1]
        now = last.after
        where = _point(last)
        if now.missing == REDACTED and disk.kind == "file":
            with OpenRoot(place.root) as tree:
                content = tree.read(place.parts, 1 << 30)
            # The log has the redacted content and no hash of the original, so compare the redacted forms.
            if _redact_content(self._log.redact, content) != text_as_recorded(self._log, now):
                return f"you edited it after {where}", True
            return self._find_edit_between(past), True
        if now.exists and now.missing and not now.hash:
            return f"whether you edited it after {where} is unknown: {now.missing}", True
        if disk.exists and not now.exists:
            return f"you created it again after {where}", False
        if now.exists and not disk.exists:
            return f"you deleted it after {where}", False
        if now.exists and not _is_at(disk, now, only_executable=True):
            return f"you edited it after {where}", False
        return self._find_edit_between(past), False

    def _find_edit_between(self, past: FilePast) -> str:
        """Finds an edit between two recorded changes: the second did not find what the first left."""
        for one, two in zip(past.later, past.later[1:], strict=False):
            after, side = one.after, two.before
            if after.missing == REDACTED == side.missing:
                is_same = text_as_recorded(self._log, after) == text_as_recorded(self._log, side)
            elif (after.exists and not after.hash) or (side.exists and not side.hash):
                continue  # not known
            else:
                is_same = (after.exists, after.hash) == (side.exists, side.hash)
            if not is_same:
                return f"you edited it between {_point(one)} and {_point(two)}"
        return ""

    def _unknown(self, past: FilePast, why: str, do: Do = "unknown") -> FileStep:
        first = past.later[0]
        return FileStep(past.path, do, why, turn=first.turn, by=self._calls.describe(first.action))

    def _make_step(self, past: FilePast, do: Do, place: FilePlace, disk: DiskEntry, why: str) -> FileStep:
        change = past.later[-1] if do == "conflict" else past.later[0]
        by = self._calls.describe(change.action)
        return FileStep(
            past.path, do, why, turn=change.turn, by=by, place=place, then=past.then, now=past.now, disk=disk
        )


def _point(change: RecordedChange) -> str:
    return f"@{change.turn}" if change.turn else f"e{change.seq}"


def _is_at(disk: DiskEntry, side: FileSide, *, only_executable: bool = False) -> bool:
    """Whether the file on disk equals a side. With `only_executable`, the executable bit is the only permission that
    counts: the others change when somebody copies a file."""
    if not side.exists or not disk.exists:
        return disk.exists == side.exists
    if disk.hash != side.hash or (disk.kind == "link") != side.is_link:
        return False
    counts = 0o100 if only_executable else 0o777
    return disk.kind == "link" or not side.mode or not (_permissions(disk.mode) ^ _permissions(side.mode)) & counts


def _permissions(mode: int | str) -> int:
    """The permission bits of a mode, as a number or octal text; 0 for invalid text."""
    try:
        return (int(mode, 8) if isinstance(mode, str) else mode) & 0o777
    except ValueError:
        return 0


def _stays_inside(place: FilePlace, target: str) -> bool:
    """Whether a symbolic link at a place would point to something below the same root."""
    if not target or target.startswith("/"):
        return False
    end = os.path.normpath("/".join([*place.parts[:-1], target]))
    return end != ".." and not end.startswith("../")


def _redact_content(redact: Redact | None, content: bytes | None) -> bytes | None:
    """A content as the log would store it."""
    value = as_value(content)
    if redact is not None and value is not None:
        event = redact(ev.FileChanged(path="x", after=value))[0]
        assert isinstance(event, ev.FileChanged)
        value = event.after
    return value.encode() if isinstance(value, str) else value


class _CaptureCheck:
    """Whether files were captured after each try of a call, not only before it. A try that was interrupted or abandoned
    may have changed files later, whatever outcome was recorded afterwards."""

    def __init__(self) -> None:
        self._is_open = self._missed = False

    @property
    def is_complete(self) -> bool:
        return not (self._is_open or self._missed)

    def take(self, entry: Entry) -> None:
        if entry.kind == "action.started":
            self._missed |= self._is_open
            self._is_open = True
        elif self._is_open and (entry.kind in END_KINDS or entry.kind == "action.uncertain"):
            self._is_open = False
            self._missed |= not _has_returned(entry)


def _has_returned(entry: Entry) -> bool:
    """Whether the tool had returned when the event was recorded. After a timeout it may still be running."""
    if entry.header.actor != "tool":
        return False
    if entry.kind == "action.uncertain":
        return bool(entry.body.get("error"))  # with an error the tool returned; without one it was stopped
    return entry.kind in ("action.succeeded", "action.failed")


class _Calls:
    """The calls after a point: tool, input, and whether their file changes were captured."""

    def __init__(self, log: Log, after: Seq) -> None:
        self._log = log
        self._calls = Calls(Call)
        self._captured: set[Seq] = set()
        checks: dict[Seq, _CaptureCheck] = {}
        for entry in log.entries(after=after):
            call = self._calls.take(entry.seq, entry.kind, entry.header, entry.body)
            if call is None:
                continue
            if entry.kind in BEGIN_KINDS:
                policy = entry.body.get("policy")
                if isinstance(policy, dict) and policy.get("captures"):
                    checks[call.request] = _CaptureCheck()
            elif call.request in checks:
                checks[call.request].take(entry)
            elif entry.kind == "file.changed":
                self._captured.add(call.request)
        self._captured.update(request for request, check in checks.items() if check.is_complete)

    def describe(self, action: str) -> str:
        """The tool of a call and its command, if it has one."""
        call = self._calls.by_action.get(action)
        if call is None:
            return ""
        entry = self._log.entry(call.request)
        command = _command(self._log.value(entry, entry.body.get("input")))
        return f"{call.tool} `{command}`" if command else call.tool

    def unseen(self, after: Seq, upto: Seq) -> tuple[Beyond, ...]:
        """Calls that may have changed files without being captured."""
        effects = effects_between(self._log, after, upto, with_file_changes=True)
        return tuple(call for call in effects if call.seq not in self._captured)


def _command(value: Value) -> str:
    """The command in a call's input, on one line; empty if it has none."""
    if isinstance(value, dict):
        value = next((value[name] for name in _COMMAND_FIELDS if value.get(name)), "")
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        value = " ".join(value)
    return " ".join(value.split())[:_COMMAND_MAX] if isinstance(value, str) else ""
